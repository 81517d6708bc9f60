"""A graph under construction: nodes, constants, inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

ML = "ai.onnx.ml"
OPSETS = {"": 18, ML: 5}  # ML 5 has trees with double thresholds, double sums and sets of categories


class Graph:
    """Nodes in the order they were added; every method returns the name of its result."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []

    def name(self) -> str:
        return f"v{len(self.nodes) + len(self.constants)}"

    def node(self, kind: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        from onnx import helper

        out = self.name()
        self.nodes.append(helper.make_node(kind, list(inputs), [out], domain=domain, **attributes))
        return out

    def constant(self, value: Any) -> str:
        from onnx import numpy_helper

        out = self.name()
        array = np.asarray(value)
        self.constants.append(numpy_helper.from_array(array.astype(object) if array.dtype.kind == "U" else array, out))
        return out

    def input(self, name: str, dtype: Any, width: int) -> str:
        from onnx import helper

        if name not in {given.name for given in self.inputs}:  # members of an ensemble share their inputs
            kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
            self.inputs.append(helper.make_tensor_value_info(name, kind, ["rows", width]))
        return name

    def output(self, value: str, name: str, dtype: Any, shape: list[Any]) -> None:
        from onnx import helper

        self.nodes.append(helper.make_node("Identity", [value], [name]))
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self.outputs.append(helper.make_tensor_value_info(name, kind, shape))

    def cast(self, value: str, dtype: Any) -> str:
        from onnx import helper

        return self.node("Cast", value, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def model(self, about: dict[str, str]) -> Any:
        """The finished model, checked."""
        import hinge
        import onnx
        from onnx import helper

        graph = helper.make_graph(self.nodes, "hinge", self.inputs, self.outputs, self.constants)
        opsets = [helper.make_opsetid(domain, version) for domain, version in OPSETS.items()]
        model = helper.make_model(
            graph, opset_imports=opsets, producer_name="hinge", producer_version=hinge.__version__
        )
        model.ir_version = 9
        helper.set_model_props(model, about)
        onnx.checker.check_model(model)
        return model
