"""What pytest leaves out where torch is not installed: the files that are made of it."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("torch") else ["sklearn_ical/samplers/_torch"]
