"""Other libraries: what writes a store of each, and what reads it as its documentation shows."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from importlib import import_module
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader

from ..records import Source
from . import common
from .common import Batch, Read, begin, made_rows, read_arrays, write_arrays

_RECORD_ROWS = 1000  # Hugging Face's own size of a record batch
_STREAM_PARTS, _STREAM_BUFFER = 64, 10_000
_TARS_AT_LEAST, _TAR_ROWS = 16, 10_000  # enough tar files to shuffle, and to share among workers
_BUFFER_ROWS = 10_000
_SHARD_ROWS, _LABEL_BYTES = 1 << 15, 8  # of array_record


def make_tensordict(source: Source) -> None:
    count = source.recipe.count
    rows = torch.zeros(()).expand(count, *source.recipe.row_shape)
    labels = torch.zeros((), dtype=torch.int64).expand(count)
    tensors = import_module("tensordict").TensorDict(rows=rows, labels=labels, batch_size=[count])
    mapped = tensors.memmap_like(str(source.folder))
    write_arrays(source, mapped["rows"].numpy(), mapped["labels"].numpy())


def tensordict(source: Source) -> Read:
    mapped = import_module("tensordict").TensorDict.load_memmap(str(source.folder))
    return lambda chosen: itemgetter("rows", "labels")(mapped[torch.from_numpy(chosen)])


def make_zarr(source: Source) -> None:
    """Write two arrays whose chunks are the blocks that will be read, uncompressed."""
    lib, folder, arrays = import_module("zarr"), source.folder, []
    for name, shape, dtype in (("rows", source.recipe.row_shape, "f4"), ("labels", (), "i8")):
        shapes = {"shape": (source.recipe.count, *shape), "chunks": (len(source.blocks[0]), *shape)}
        new = lib.create_array(store=folder / name, dtype=dtype, compressors=None, **shapes)
        arrays.append(new)
    write_arrays(source, *arrays)


def zarr(source: Source) -> Read:
    open_array = import_module("zarr").open_array
    return read_arrays(*(open_array(source.folder / name, mode="r") for name in ("rows", "labels")))


def _arrow_tables(source: Source, schema: Any) -> Iterator[Any]:
    pa = import_module("pyarrow")
    for block in source.blocks:
        values = pa.array(source.recipe.rows(block).reshape(-1))
        rows = pa.FixedSizeListArray.from_arrays(values, source.recipe.width)
        yield pa.table([rows, pa.array(source.recipe.labels(block))], schema=schema)


def _from_arrow(source: Source, table: Any) -> tuple[Any, Any]:
    rows = table["row"].combine_chunks().flatten().to_numpy()
    return rows.reshape(-1, *source.recipe.row_shape), table["label"].to_numpy()


def make_parquet(source: Source) -> None:
    """Write row groups of a block; dictionaries and compression find nothing in noise."""
    pa, path = import_module("pyarrow"), source.folder / "rows.parquet"
    schema = pa.schema({"row": pa.list_(pa.float32(), source.recipe.width), "label": pa.int64()})
    write = import_module("pyarrow.parquet").ParquetWriter
    with write(path, schema, compression="none", use_dictionary=False) as writer:
        for table in _arrow_tables(source, schema):
            writer.write_table(table, row_group_size=table.num_rows)


def parquet(source: Source) -> Read:
    file = import_module("pyarrow.parquet").ParquetFile(source.folder / "rows.parquet")
    size = len(source.blocks[0])
    return lambda part: _from_arrow(source, file.read_row_group(part.start // size))


def make_huggingface(source: Source) -> None:
    """Write the Arrow stream that the library itself would write."""
    lib, path = import_module("datasets"), source.folder / "rows.arrow"
    row = lib.Sequence(lib.Value("float32"), length=source.recipe.width)
    schema = lib.Features({"row": row, "label": lib.Value("int64")}).arrow_schema
    with import_module("pyarrow").ipc.new_stream(path, schema) as writer:
        for table in _arrow_tables(source, schema):
            writer.write_table(table, max_chunksize=_RECORD_ROWS)


def _open_huggingface(source: Source) -> Any:
    return import_module("datasets").Dataset.from_file(str(source.folder / "rows.arrow"))


def huggingface(source: Source) -> Read:
    """Return what reads a mapped table, in the format Arrow, which was the fastest here."""
    table = _open_huggingface(source).with_format("arrow")
    return lambda chosen: map(torch.tensor, _from_arrow(source, table[chosen]))


def huggingface_stream(source: Source) -> Iterable[Batch]:
    """Return the same as a stream through a shuffle buffer, in numpy, which was the fastest."""
    parts = _open_huggingface(source).to_iterable_dataset(num_shards=_STREAM_PARTS)
    rows = parts.with_format("numpy").shuffle(seed=source.seed, buffer_size=_STREAM_BUFFER)

    def collate(found: Any) -> Batch:
        shape = -1, *source.recipe.row_shape
        return torch.from_numpy(found["row"]).view(shape), torch.from_numpy(found["label"])

    batches, workers = rows.batch(source.batch_size), source.workers
    return DataLoader(batches, batch_size=None, num_workers=workers, collate_fn=collate)


def torchdata(source: Source) -> Any:
    """Return nodes over a memory map: threads take the place of worker processes."""
    lib, rows = import_module("torchdata.nodes"), common.Indexed(source, common.open_map)
    indices, fetch = lib.IterableWrapper(common.shuffled_batches(source)), rows.__getitem__
    nodes = lib.Mapper(indices, fetch)
    if workers := source.workers:
        nodes = lib.ParallelMapper(indices, fetch, num_workers=workers, method="thread")
        nodes = lib.Prefetcher(nodes, prefetch_factor=2)
    return lib.Loader(nodes)


def make_webdataset(source: Source) -> None:
    """Write each row as raw bytes and its label as text, many to a tar file."""
    write, tars = import_module("webdataset").ShardWriter, str(source.folder / "rows-%05d.tar")
    tar_rows = max(1, min(_TAR_ROWS, source.recipe.count // _TARS_AT_LEAST))
    with write(tars, maxcount=tar_rows, maxsize=1 << 28, verbose=0) as writer:
        for index, row, label in made_rows(source):
            sample = {"__key__": f"{index:09d}", "row": row.tobytes(), "cls": b"%d" % label}
            writer.write(sample)


def webdataset(source: Source) -> Any:
    """Return the usual pipeline: tar files shuffled, samples shuffled in a buffer, batched."""
    lib, tars = import_module("webdataset"), sorted(map(str, source.folder.glob("rows-*.tar")))
    buffer = min(_BUFFER_ROWS, source.mix_bytes_each // source.recipe.row_bytes)

    def collate(samples: list[dict[str, Any]]) -> Batch:
        rows = np.stack([np.frombuffer(one["row"], np.float32) for one in samples])
        labels = torch.tensor([int(one["cls"]) for one in samples])
        return torch.from_numpy(rows).view(-1, *source.recipe.row_shape), labels

    samples = lib.WebDataset(tars, shardshuffle=len(tars), seed=source.seed).shuffle(buffer)
    batches = samples.batched(source.batch_size, collation_fn=collate)
    return lib.WebLoader(batches, batch_size=None, num_workers=source.workers)


def _samples(source: Source, block: range) -> Iterator[tuple[Any, int]]:
    yield from zip(source.recipe.rows(block), source.recipe.labels(block).tolist(), strict=True)


def make_litdata(source: Source) -> None:
    """Write chunks of 64 MB; a block of samples at a time, as the library lets one do."""
    how = {"output_dir": str(source.folder), "chunk_bytes": "64MB", "mode": "overwrite"}
    make, inputs = partial(_samples, source), source.blocks
    import_module("litdata").optimize(fn=make, inputs=inputs, num_workers=1, **how)


def litdata(source: Source) -> Any:
    lib, size, workers = import_module("litdata"), source.batch_size, source.workers
    rows = lib.StreamingDataset(str(source.folder), shuffle=True, seed=source.seed)
    return lib.StreamingDataLoader(rows, batch_size=size, num_workers=workers)


def _import_streaming() -> Any:
    """Return mosaicml's library, which imports torchvision but never calls its operators.

    Built for CUDA beside a torch without, they do not load, and their names are missed: given here.
    """
    with suppress(RuntimeError):
        return import_module("streaming")
    for name in ("nms", "qnms"):
        torch.library.define(f"torchvision::{name}", "(Tensor a, Tensor b, float c) -> Tensor")
    return import_module("streaming")


def make_mosaicml(source: Source) -> None:
    shape = ",".join(map(str, source.recipe.row_shape))
    columns = {"row": f"ndarray:float32:{shape}", "label": "int64"}
    write = _import_streaming().MDSWriter
    with write(out=str(source.folder), columns=columns, exist_ok=True) as shards:
        for _, row, label in made_rows(source):
            shards.write({"row": row, "label": label})


def mosaicml(source: Source) -> Iterable[Batch]:
    size, where = source.batch_size, {"local": str(source.folder), "shuffle_seed": source.seed}
    rows = _import_streaming().StreamingDataset(**where, shuffle=True, batch_size=size)
    loader: Any = DataLoader(rows, batch_size=size, num_workers=source.workers)
    return begin(lambda: ((batch["row"], batch["label"]) for batch in loader))


def make_grain(source: Source) -> None:
    """Write a record for each row, in groups of one, which random access wants, and in shards.

    What one record takes to find grows with its shard: out of a single file of a million, grain
    read 400 a second, out of 64 files 17,000. array_record, asked for whole batches, likes fewer.
    """
    open_shard = import_module("array_record.python.array_record_module").ArrayRecordWriter
    for number, rows in groupby(made_rows(source), key=lambda made: made[0] // _SHARD_ROWS):
        path = str(source.folder / f"rows-{number:05}.array_record")
        writer = open_shard(path, "group_size:1,uncompressed")
        for _, row, label in rows:
            writer.write(row.tobytes() + label.tobytes())
        writer.close()


def _open_records(source: Source) -> Any:
    lib = import_module("array_record.python.array_record_data_source")
    return lib.ArrayRecordDataSource(sorted(map(str, source.folder.glob("*.array_record"))))


def _decode(row_shape: tuple[int, ...], record: bytes) -> tuple[Any, Any]:
    row = np.frombuffer(record[:-_LABEL_BYTES], np.float32).reshape(row_shape)
    return row, np.frombuffer(record[-_LABEL_BYTES:], np.int64)[0]


def grain(source: Source) -> Iterable[Batch]:
    """Return its usual pipeline, with its own number of read threads."""
    lib = import_module("grain")
    records = lib.MapDataset.source(_open_records(source)).shuffle(seed=source.seed)
    rows = records.map(partial(_decode, source.recipe.row_shape))
    batches = rows.batch(source.batch_size).to_iter_dataset()
    if workers := source.workers:
        options = lib.multiprocessing.MultiprocessingOptions(num_workers=workers)
        batches = batches.mp_prefetch(options)
    return begin(lambda: (tuple(map(torch.from_numpy, batch)) for batch in batches))


def array_record(source: Source) -> Read:
    """Return what reads many records in one call, which the library answers with threads."""
    records, shape = _open_records(source), (-1, *source.recipe.row_shape)

    def read(chosen: Any) -> tuple[Any, Any]:
        found = b"".join(records.__getitems__(chosen.tolist()))
        parts = np.frombuffer(found, np.uint8).reshape(len(chosen), -1)
        rows, labels = parts[:, :-_LABEL_BYTES].copy(), parts[:, -_LABEL_BYTES:].copy()
        return rows.view(np.float32).reshape(shape), labels.view(np.int64)[:, 0]

    return read
