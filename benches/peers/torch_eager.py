"""PyTorch, eager, with autograd: dense n x n and a causal mask, or a local head."""

import torch

import peer
import torch_objective

FORMS = {
    "plain": torch_objective.dense,
    "few-passes": torch_objective.dense_few_passes,
    "local-blocks": torch_objective.local_blocks,
    "local-gather": torch_objective.local_gather,
}


def form(parser):
    parser.add_argument("--form", choices=FORMS, default="plain", help="how the objective is written")


def main():
    options = peer.flags(__doc__, form)
    torch.set_num_threads(options.threads)
    data = peer.read(options)
    evaluate = torch_objective.evaluation(FORMS[options.form](data), *torch_objective.tensors(data))
    peer.report(options, "torch-eager", evaluate, {"torch": torch.__version__}, form=options.form)


if __name__ == "__main__":
    main()
