// NumPy arrays in and out of the bindings: views of what comes in, owners of what goes out.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace nb = nanobind;

template <class T, int dimensions = 1>
using In = nb::ndarray<const T, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;
template <class T> using Out = nb::ndarray<nb::numpy, T>;

// Call what may wait for Python's lock. Where the interpreter has ended meanwhile, a daemon thread stops here for good:
// Python ends such threads by unwinding them, which no destructor and no function of nanobind lets pass.
template <class Call> auto to_its_end(Call call) noexcept {
    try {
        return call();
    } catch (...) {
        for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
    }
}

// Python's lock is let go while this lives.
class Unlocked {
   public:
    Unlocked() : state_(PyEval_SaveThread()) {}
    ~Unlocked() {
        to_its_end([this] { PyEval_RestoreThread(state_); });
    }
    Unlocked(const Unlocked&) = delete;

   private:
    PyThreadState* state_;
};

// Python's lock is held while this lives.
class Locked {
   public:
    Locked() : state_(to_its_end([] { return PyGILState_Ensure(); })) {}
    ~Locked() { PyGILState_Release(state_); }
    Locked(const Locked&) = delete;

   private:
    PyGILState_STATE state_;
};

// What In is, through the buffer protocol: quicker, but nothing is converted. For what takes microseconds.
template <class T, int dimensions = 1> class BufferView {
   public:
    BufferView() = default;
    BufferView(BufferView&& other) noexcept : buffer_(other.buffer_) { other.buffer_.obj = nullptr; }
    BufferView& operator=(BufferView&& other) noexcept {
        std::swap(buffer_, other.buffer_);
        return *this;
    }
    ~BufferView() {
        if (buffer_.obj) PyBuffer_Release(&buffer_);
    }
    // False where it is no array of this kind that lies in order.
    bool take(nb::handle array) noexcept {
        BufferView found;
        if (PyObject_GetBuffer(array.ptr(), &found.buffer_, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT)) {
            found.buffer_.obj = nullptr;
            PyErr_Clear();
            return false;
        }
        const char* format = found.buffer_.format ? found.buffer_.format : "B";
        if (found.buffer_.ndim != dimensions || found.buffer_.itemsize != sizeof(T) || !*format || format[1] ||
            !std::strchr(std::is_floating_point_v<T> ? "fd"
                         : std::is_signed_v<T>       ? "bhilq"
                                                     : "BHILQ",
                         *format))
            return false;
        *this = std::move(found);
        return true;
    }
    const T* data() const { return static_cast<const T*>(buffer_.buf); }
    std::size_t size() const { return static_cast<std::size_t>(buffer_.len) / sizeof(T); }
    std::size_t shape(int axis) const {
        static_assert(dimensions > 1);  // of one, it may lie in the buffer, and stay behind when that moves
        return static_cast<std::size_t>(buffer_.shape[axis]);
    }

   private:
    static_assert(std::is_arithmetic_v<T>);
    Py_buffer buffer_{};
};

template <class T, int dimensions> struct nb::detail::type_caster<BufferView<T, dimensions>> {
    using Array = BufferView<T, dimensions>;
    NB_TYPE_CASTER(Array, const_name("numpy.ndarray"))
    bool from_python(handle array, std::uint32_t, cleanup_list*) noexcept { return value.take(array); }
};

template <class Array>
auto view(const Array& array) {
    return std::span(array.data(), array.size());
}

template <class T>
Out<T> give(std::vector<T> values, std::vector<std::size_t> shape) {
    auto* owned = new std::vector<T>(std::move(values));
    nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return Out<T>(owned->data(), shape.size(), shape.data(), owner);
}

template <class T>
Out<T> give(std::vector<T> values) {
    const std::size_t size = values.size();
    return give(std::move(values), {size});
}

// An array (n, width) that NumPy makes, to be filled: for few numbers quicker than to hand over a vector. Needs the GIL.
template <class T> class NewArray {
    static_assert(std::is_same_v<T, double> || std::is_same_v<T, std::int64_t>);

   public:
    NewArray(std::size_t n, std::size_t width) : array_(numpy().empty(nb::make_tuple(n, width), type())) {
        Py_buffer found;
        if (PyObject_GetBuffer(array_.ptr(), &found, PyBUF_CONTIG)) throw nb::python_error();
        values_ = static_cast<T*>(found.buf);
        PyBuffer_Release(&found);  // NumPy's memory stays where it is
    }
    T* values() const { return values_; }
    nb::object give() && { return std::move(array_); }

   private:
    struct Numpy {
        nb::object empty, float64, int64;
    };
    // Never given back: it may outlive Python. Threads that come at once may each make one, of which one is kept; none
    // waits for another, which may hold Python's lock.
    static const Numpy& numpy() {
        static std::atomic<const Numpy*> kept{nullptr};
        if (const auto* found = kept.load(std::memory_order_acquire)) return *found;
        const auto module = nb::module_::import_("numpy");
        const auto type = module.attr("dtype");
        std::unique_ptr<const Numpy> made(new Numpy{module.attr("empty"), type("float64"), type("int64")});
        const Numpy* first = nullptr;
        if (!kept.compare_exchange_strong(first, made.get())) return *first;
        return *made.release();
    }
    static nb::handle type() { return std::is_same_v<T, double> ? numpy().float64 : numpy().int64; }

    nb::object array_;
    T* values_;
};
