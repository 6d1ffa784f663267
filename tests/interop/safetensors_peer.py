"""The library and the reference implementations of safetensors and NumPy read each other's files.

Usage: python safetensors_peer.py TOOL     (needs the packages of requirements.txt)
TOOL is the executable built from tools/safetensors_tool.cpp.
"""

import json
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import safetensors
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file, save_file

TOOL = ""
# Those that both formats have.
TYPES = (
    "float64 float32 float16 int64 int32 int16 int8 uint64 uint32 uint16 uint8 complex64 bool"
).split()


def numbers(random, shape, t):
    value = np.asarray(random.normal(size=shape) * 50)
    if t.startswith("complex"):
        value = value + 1j * random.normal(size=shape)
    return np.asarray(abs(value) if t.startswith("u") else value).astype(t)


def tool(*arguments):
    return subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True)


def file_of(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


class Peer(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def copied(self, mode, source):
        target = self.folder / "copy"
        done = tool(mode, source, target)
        self.assertEqual(done.returncode, 0, done.stderr)
        return target

    def test_the_reference_reads_what_the_library_writes(self):
        path = self.folder / "sample"
        self.assertEqual(tool("sample", path).returncode, 0)
        expected = {
            "f64": np.array([[0, -1.5], [1e300, 0.1]]),
            "f32": np.arange(1, 7, dtype=np.float32).reshape(3, 2),
            "f16": np.array([1.5, -2], dtype=np.float16),
            "i64 scalar": np.array(-(2**62)),
            "i32": np.array([[-7], [8]], dtype=np.int32),
            "i8": np.array([-128, 127], dtype=np.int8),
            "u8": np.array([0, 255], dtype=np.uint8),
            "bool": np.array([True, False, True]),
            "empty": np.zeros((0, 4), dtype=np.float32),
        }
        with safe_open(path, framework="np") as f:
            self.assertEqual(f.metadata(), {"by": 'cella "é"\n'})
            self.assertEqual(set(f.keys()), set(expected) | {"bf16"})
            for name, value in expected.items():
                found = f.get_tensor(name)
                self.assertEqual(found.dtype, value.dtype, name)
                self.assertEqual(found.shape, value.shape, name)
                np.testing.assert_array_equal(found, value, err_msg=name)
        # NumPy has no bfloat16: compare its bits.
        bf16 = dict(safetensors.deserialize(path.read_bytes()))["bf16"]
        self.assertEqual((bf16["dtype"], bf16["shape"]), ("BF16", [2]))
        self.assertEqual(bytes(bf16["data"]), struct.pack("<HH", 0x3FC0, 0xC000))

    def test_what_the_reference_writes_comes_back_byte_for_byte(self):
        random = np.random.default_rng(1)
        shapes = [(), (3,), (2, 0, 5), (2, 3, 4), (1,) * 8]
        tensors = {
            f"layer.{i}.é{t}\n": numbers(random, s, t)
            for i, s in enumerate(shapes)
            for t in TYPES
        }
        path = self.folder / "reference"
        save_file(tensors, path, metadata={"format": "np"})
        copy = self.copied("safetensors", path)
        self.assertEqual(copy.read_bytes(), path.read_bytes())
        for name, value in load_file(copy).items():
            np.testing.assert_array_equal(value, tensors[name], err_msg=name)

    def test_all_dtypes_lie_in_the_order_of_the_reference(self):
        names = TYPES + ["bfloat16"]
        data = np.zeros(8, np.uint8)  # outlives the call, which takes its address
        tensors = {}
        for i, t in enumerate(names):
            size = 2 if t == "bfloat16" else np.dtype(t).itemsize
            tensors[f"t{i}"] = safetensors.TensorSpec(
                dtype=t, shape=[1], data_ptr=data.ctypes.data, data_len=size
            )
        path = self.folder / "reference"
        safetensors.serialize_file(tensors, str(path), metadata=None)
        self.assertEqual(self.copied("safetensors", path).read_bytes(), path.read_bytes())

    def test_both_refuse_the_same_hostile_files(self):
        def one(**fields):
            return {"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]} | fields}

        other = {"dtype": "F32", "shape": [1]}
        hostile = {
            "empty": b"",
            "huge header": struct.pack("<Q", 2**63) + b"{}",
            "cut header": struct.pack("<Q", 100) + b"{}",
            "cut data": file_of(one(), b"123"),
            "more data": file_of(one(), b"12345"),
            "no JSON": file_of(b"{nonsense}"),
            "deep": file_of(b'{"w":' + b"[" * 100000, b""),
            "not UTF-8": file_of(b'{"\xff":{}}'),
            "negative shape": file_of(one(shape=[-1]), b"1234"),
            "wrong size": file_of(one(shape=[2]), b"1234"),
            "overflow": file_of(one(shape=[2**31 - 1] * 4), b"1234"),
            "backwards": file_of(one(data_offsets=[4, 0]), b"1234"),
            "hole": file_of(one() | {"v": other | {"data_offsets": [8, 12]}}, bytes(12)),
            "overlap": file_of(one() | {"v": other | {"data_offsets": [2, 6]}}, bytes(6)),
            "no dtype": file_of({"w": {"shape": [1], "data_offsets": [0, 4]}}, b"1234"),
            "unknown dtype": file_of(one(dtype="F3"), b"1234"),
        }
        path = self.folder / "hostile"
        for what, data in hostile.items():
            with self.subTest(what):
                path.write_bytes(data)
                with self.assertRaises(SafetensorError):
                    safe_open(path, framework="np")
                done = tool("safetensors", path, self.folder / "copy")
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn(str(path), done.stderr)
                self.assertFalse((self.folder / "copy").exists())

    def test_numpy_and_the_library_exchange_arrays(self):
        random = np.random.default_rng(2)
        for t in TYPES + ["complex128"]:
            for shape in [(), (3,), (2, 0, 5), (2, 3, 4), (1,) * 8]:
                with self.subTest(dtype=t, shape=shape):
                    value = numbers(random, shape, t)
                    path = self.folder / "a.npy"
                    np.save(path, value)
                    copy = self.copied("npy", path)
                    self.assertEqual(copy.read_bytes(), path.read_bytes())

    def test_numpy_arrays_in_other_orders_and_versions_are_read(self):
        value = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
        path = self.folder / "a.npy"
        np.save(path, np.asfortranarray(value))
        np.testing.assert_array_equal(np.load(self.copied("npy", path)), value)
        np.save(path, value.T)
        np.testing.assert_array_equal(np.load(self.copied("npy", path)), value.T)
        for version in [(1, 0), (2, 0), (3, 0)]:
            with open(path, "wb") as f:
                np.lib.format.write_array(f, value, version=version)
            np.testing.assert_array_equal(np.load(self.copied("npy", path)), value)

    def test_numpy_types_without_a_counterpart_are_refused(self):
        path = self.folder / "a.npy"
        for value in [
            np.zeros(2, ">f4"),
            np.zeros(2, np.longdouble),
            np.zeros(2, [("a", "f4")]),
            np.array(["text"]),
            np.array([{}], dtype=object),
        ]:
            with self.subTest(value.dtype):
                np.save(path, value, allow_pickle=True)
                done = tool("npy", path, self.folder / "copy")
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn(str(path), done.stderr)


if __name__ == "__main__":
    TOOL = sys.argv.pop(1)
    unittest.main()
