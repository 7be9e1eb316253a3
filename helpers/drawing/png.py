"""Write pixels as a PNG file, quickly rather than small: a live view does it twice a second.

Rows go unfiltered through the fastest compression. For flat colours that gives a smaller file than
trying filters, as Pillow does, in a third of the time.
"""

import struct
import zlib

import numpy as np
import numpy.typing as npt


def encode_png(pixels: npt.NDArray[np.uint8]) -> bytes:
    """Return (height, width, 4) bytes of RGBA as a PNG file: https://www.w3.org/TR/png-3/."""
    height, width = pixels.shape[:2]
    rows = np.zeros((height, 1 + 4 * width), np.uint8)  # each row starts with its filter: 0, none
    rows[:, 1:] = pixels.reshape(height, -1)
    # Bits, colour type, compression, filter method, no interlace.
    chunks = {b"IHDR": struct.pack(">II5B", width, height, 8, 6, 0, 0, 0)}
    chunks |= {b"IDAT": zlib.compress(rows.data, 1), b"IEND": b""}
    file = b"\x89PNG\r\n\x1a\n"
    for kind, data in chunks.items():
        file += struct.pack(">I", len(data)) + kind + data
        file += struct.pack(">I", zlib.crc32(kind + data))
    return file
