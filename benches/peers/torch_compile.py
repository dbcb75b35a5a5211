"""PyTorch through torch.compile: the plain dense form, forward and backward compiled."""

import torch

import peer
import torch_objective


def main():
    options = peer.flags(__doc__)
    torch.set_num_threads(options.threads)
    data = peer.read(options)
    value = torch.compile(torch_objective.dense_fused_mask(data), fullgraph=True, dynamic=False)
    evaluate = torch_objective.evaluation(value, *torch_objective.tensors(data))
    peer.report(options, "torch-compile", evaluate, {"torch": torch.__version__})


if __name__ == "__main__":
    main()
