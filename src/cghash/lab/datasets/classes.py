"""Names of the classes, in the order of their labels."""

from __future__ import annotations

from string import ascii_uppercase, digits

__all__ = ["CIFAR", "DIGITS", "LABELME", "LETTERS", "NEWSGROUPS", "SCENES", "VOC"]


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


DIGITS, LETTERS = tuple(digits), tuple(ascii_uppercase)
SCENES = _names(
    "Bedroom Coast Forest Highway Industrial InsideCity Kitchen LivingRoom Mountain Office OpenCountry Store Street "
    "Suburb TallBuilding"
)
LABELME = _names("person car building window tree sign door bookshelf chair table keyboard head")
VOC = _names(
    "aeroplane bicycle bird boat bottle bus car cat chair cow diningtable dog horse motorbike person pottedplant sheep "
    "sofa train tvmonitor"
)
CIFAR = _names("airplane automobile bird cat deer dog frog horse ship truck")
NEWSGROUPS = _names(
    "alt.atheism comp.graphics comp.os.ms-windows.misc comp.sys.ibm.pc.hardware comp.sys.mac.hardware comp.windows.x "
    "misc.forsale rec.autos rec.motorcycles rec.sport.baseball rec.sport.hockey sci.crypt sci.electronics sci.med "
    "sci.space soc.religion.christian talk.politics.guns talk.politics.mideast talk.politics.misc talk.religion.misc"
)
