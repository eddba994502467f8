"""Image data sets from local files or OpenML, and their float forms; no model and no query."""

from sklearn_ical.datasets._float_images import as_float_images, repeat_images
from sklearn_ical.datasets._image_data import ImageData
from sklearn_ical.datasets._local_files import load_images
from sklearn_ical.datasets._openml import fetch_images

__all__ = ["ImageData", "as_float_images", "fetch_images", "load_images", "repeat_images"]
