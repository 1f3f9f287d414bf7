// SharedLock: runs a function while it is held. No signal of Python's comes between taking it and the function, nor
// between the function's end and giving it back, as these are not Python.
#include <stdexcept>

#include "arrays.hpp"
#include "shared_lock.hpp"

using namespace cghash;

namespace {

constexpr std::chrono::milliseconds between_signals{50};

class Held {
   public:
    Held(SharedLock& lock, SharedLock::As as) : lock_(lock), as_(as) {
        if (lock_.try_take(as_)) return;
        if (lock_.is_mine())
            throw std::runtime_error("a change was asked for in the middle of another call of this thread");
        const auto place = lock_.queue_up();
        while (!waited(place)) {
            lock_.step_aside(place);  // a handler may use what we wait for, or wait for threads that do
            if (to_its_end([] { return PyErr_CheckSignals(); })) throw nb::python_error();
            lock_.step_back(place);
        }
    }
    ~Held() { lock_.give_back(); }
    Held(const Held&) = delete;

   private:
    bool waited(std::uint64_t place) {
        const Unlocked unlocked;
        return lock_.wait(place, as_, between_signals);
    }

    SharedLock& lock_;
    const SharedLock::As as_;
};

template <SharedLock::As as> nb::object run(SharedLock& self, nb::handle work, nb::args arguments) {
    const Held held(self, as);
    PyObject* found = to_its_end([&] { return PyObject_Call(work.ptr(), arguments.ptr(), nullptr); });
    if (!found) throw nb::python_error();
    return nb::steal(found);
}

}  // namespace

void bind_lock(nb::module_& m) {
    nb::class_<SharedLock>(m, "SharedLock")
        .def(nb::init<>())
        .def("read", run<SharedLock::As::reader>)
        .def("write", run<SharedLock::As::writer>)
        .def("is_mine", &SharedLock::is_mine)
        .def("reset", &SharedLock::reset);
}
