"""Everybody who takes part. To add one: a module with load() (and make()), and a line here."""

from ..records import Cache, Contestant

_WARM: tuple[Cache, ...] = ("warm",)
_ONE = (0,)

LIMITS = (
    Contestant(
        "limit-read", "sequential read of the .npy", "limit", "npy", "limits", "read", workers=_ONE
    ),
    Contestant(
        "limit-fromfile", "np.fromfile", "limit", "npy", "limits", "fromfile", "", _WARM, _ONE
    ),
    Contestant("limit-copy", "memory copy", "limit", "npy", "limits", "copy", "", _WARM, _ONE),
    Contestant(
        "limit-hand-over", "DataLoader, a ready batch", "limit", "npy", "limits", "hand-over",
        caches=_WARM,
    ),
    Contestant(
        "limit-lzf", "lzf chunks in order (h5py)", "limit", "hdf5-lzf", "limits", "hdf5", "",
        _WARM, _ONE,
    ),
    Contestant(
        "limit-gzip", "gzip chunks in order (h5py)", "limit", "hdf5-gzip", "limits", "hdf5", "",
        _WARM, _ONE,
    ),
    Contestant(
        "limit-zlib", "gzip chunks in order (zlib)", "limit", "hdf5-gzip", "limits", "zlib", "",
        _WARM, _ONE,
    ),
)  # fmt: skip

# What a rate is compared with under each condition, taken in the same round.
REFERENCE = {"warm": "limit-fromfile", "cold": "limit-read", "limited": "limit-read"}

PLAIN = (
    Contestant("map-batches", "memory map, batches", "plain", "npy", "plain", "mapped batches"),
    Contestant("map-rows", "memory map, row by row", "plain", "npy", "plain", "mapped rows"),
    Contestant("h5py-blocks", "h5py, blocks", "plain", "hdf5", "plain", "hdf5 blocks"),
    Contestant("h5py-blocks-gzip", "h5py gzip, blocks", "plain", "hdf5-gzip", "plain",
               "hdf5 blocks"),
    Contestant("h5py-rows", "h5py, row by row", "plain", "hdf5", "plain", "hdf5 rows"),
    Contestant("h5py-rows-lzf", "h5py lzf, row by row", "plain", "hdf5-lzf", "plain", "hdf5 rows"),
    Contestant("h5py-rows-gzip", "h5py gzip, row by row", "plain", "hdf5-gzip", "plain",
               "hdf5 rows"),
)  # fmt: skip


def _peer(
    name: str,
    title: str,
    variant: str = "",
    *,
    module: str = "",
    store: str = "",
    environment: str = "",
) -> Contestant:
    """Return a peer whose module, store and environment have its own name, or those given."""
    module = module or name
    environment = environment or module
    return Contestant(name, title, "peer", store or module, module, variant, environment)


PEERS = (
    _peer("tensordict", "tensordict"),
    _peer("zarr", "zarr"),
    _peer("parquet", "parquet (pyarrow)"),
    _peer("huggingface", "Hugging Face datasets", "batches"),
    _peer("huggingface-stream", "Hugging Face, stream", "stream", module="huggingface"),
    _peer("webdataset", "webdataset"),
    _peer("litdata", "litdata"),
    _peer("mosaicml", "mosaicml-streaming"),
    _peer("grain", "grain, array_record"),
    _peer("array-record", "array_record, batches", module="array_record", store="grain",
          environment="grain"),
    _peer("torchdata", "torchdata nodes", store="npy"),
)  # fmt: skip

_FORMATS = (
    ("npy", ".npy"),
    ("hdf5", "HDF5"),
    ("hdf5-lzf", "HDF5 lzf"),
    ("hdf5-gzip", "HDF5 gzip"),
)
OURS = tuple(
    Contestant(f"ours-{variant}-{store}", f"{title}, {words}", "ours", store, "ours", variant)
    for variant, title in (("blocks", "ShuffledBlocks"),)
    for store, words in _FORMATS
)

EVERYBODY = LIMITS + OURS + PLAIN + PEERS
