"""Everybody who takes part. To add one: a module with load() (and make()), and a line here."""

from ..records import Cache, Contestant

_WARM: tuple[Cache, ...] = ("warm",)


def _limit(
    name: str,
    title: str,
    variant: str,
    *,
    store: str = "npy",
    caches: tuple[Cache, ...] = _WARM,
    workers: tuple[int, ...] = (0,),
) -> Contestant:
    return Contestant(
        f"limit-{name}", title, "limit", store, "limits", variant, "", caches, workers
    )


def _plain(name: str, title: str, variant: str, store: str, *, drawn: bool = True) -> Contestant:
    return Contestant(name, title, "plain", store, "plain", variant, in_table_only=not drawn)


def _peer(
    name: str,
    title: str,
    variant: str = "",
    *,
    module: str = "",
    store: str = "",
    environment: str = "",
    drawn: bool = True,
) -> Contestant:
    """Return a peer whose module, store and environment have its own name, or those given."""
    module = module or name
    return Contestant(
        name,
        title,
        "peer",
        store or module,
        module,
        variant,
        environment or module,
        in_table_only=not drawn,
    )


LIMITS = (
    _limit("read", "sequential read", "read", caches=("warm", "cold", "limited")),
    _limit("fromfile", "np.fromfile", "fromfile"),
    _limit("copy", "memory copy", "copy"),
    _limit("hand-over", "DataLoader, a ready batch", "hand-over", workers=(0, 2)),
    _limit("lzf", "lzf chunks in order, h5py", "hdf5", store="hdf5-lzf"),
    _limit("gzip", "gzip chunks in order, h5py", "hdf5", store="hdf5-gzip"),
    _limit("zlib", "gzip chunks in order, zlib", "zlib", store="hdf5-gzip"),
)

# What a rate is compared with under each condition, taken in the same round.
REFERENCE: dict[Cache, str] = {
    "warm": "limit-fromfile",
    "cold": "limit-read",
    "limited": "limit-read",
}

_FORMATS = (
    ("npy", ".npy"),
    ("hdf5", "HDF5"),
    ("hdf5-lzf", "HDF5 lzf"),
    ("hdf5-gzip", "HDF5 gzip"),
)

_PATHS = (
    ("blocks", "ShuffledBlocks"),
    ("sampler", "BlockShuffleSampler"),
    ("dataset", "our datasets"),
)
_PAST_CACHE = Contestant(
    "ours-blocks-past",
    "ShuffledBlocks, past_cache=True",
    "ours",
    "npy",
    "ours",
    "past",
    caches=("cold",),  # in a memory limit it does so of itself, and a warm file would be its loss
    in_table_only=True,
)
OURS = (
    *(
        Contestant(
            f"ours-{variant}-{store}",
            f"{title}, {words}",
            "ours",
            store,
            "ours",
            variant,
            in_table_only=variant != "blocks" and store != "npy",
        )
        for variant, title in _PATHS
        for store, words in _FORMATS
    ),
    _PAST_CACHE,
)

PLAIN = (
    _plain("map-batches", "memory map, batches", "mapped batches", "npy"),
    _plain("map-rows", "memory map, row by row", "mapped rows", "npy"),
    _plain("h5py-blocks", "h5py, blocks", "hdf5 blocks", "hdf5", drawn=False),
    _plain("h5py-blocks-gzip", "h5py gzip, blocks", "hdf5 blocks", "hdf5-gzip", drawn=False),
    _plain("h5py-rows", "h5py, row by row", "hdf5 rows", "hdf5"),
    _plain("h5py-rows-lzf", "h5py lzf, row by row", "hdf5 rows", "hdf5-lzf", drawn=False),
    _plain("h5py-rows-gzip", "h5py gzip, row by row", "hdf5 rows", "hdf5-gzip"),
)

PEERS = (
    _peer("tensordict", "tensordict"),
    _peer("zarr", "zarr"),
    _peer("parquet", "parquet (pyarrow)"),
    _peer("huggingface", "Hugging Face datasets", "batches"),
    _peer(
        "huggingface-stream", "Hugging Face, stream", "stream", module="huggingface", drawn=False
    ),
    _peer("webdataset", "webdataset"),
    _peer("litdata", "litdata"),
    _peer("mosaicml", "mosaicml-streaming"),
    _peer("grain", "grain, array_record"),
    _peer(
        "array-record",
        "array_record, batches",
        module="array_record",
        store="grain",
        environment="grain",
        drawn=False,
    ),
    _peer("torchdata", "torchdata nodes", store="npy"),
)

EVERYBODY = LIMITS + OURS + PLAIN + PEERS
