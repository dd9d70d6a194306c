"""A Lightning run whose loss becomes nan. What mpdoctor needs is saved by the callback."""

import math

import lightning as L
import torch
from torch import nn
from torch.nn import functional as F


class Forecaster(L.LightningModule):
    """The next value of a series from the sixteen before it."""

    def __init__(self, lr: float = 0.2) -> None:
        super().__init__()
        self.lr = lr
        self.layers = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))

    def training_step(self, batch, index):
        past, future = batch
        return F.mse_loss(self.layers(past), future)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.lr)


class ForMpdoctor(L.Callback):
    """Keeps the batches since the last checkpoint, and stops at the first loss that is not finite."""

    recent: list = []

    def on_train_batch_start(self, trainer, module, batch, index):
        self.recent.append(batch)

    def on_train_batch_end(self, trainer, module, outputs, batch, index):
        if not math.isfinite(outputs["loss"]):
            torch.save(self.recent, "batches.pt")
            raise SystemExit("the loss is nan")
        if trainer.global_step % 3 == 0:
            trainer.save_checkpoint("last.ckpt")
            self.recent.clear()


def series() -> torch.utils.data.Dataset:
    """A noisy wave, cut into pieces."""
    time = torch.arange(2000) / 7
    values = 3 * torch.sin(time) + 0.3 * torch.randn(2000, generator=torch.Generator().manual_seed(0))
    pieces = values.unfold(0, 17, 1)
    return torch.utils.data.TensorDataset(pieces[:, :16], pieces[:, 16:])


if __name__ == "__main__":
    L.seed_everything(0)
    trainer = L.Trainer(
        precision="bf16-mixed", max_steps=60, callbacks=[ForMpdoctor()], accelerator="cpu",
        logger=False, enable_checkpointing=False, enable_progress_bar=False,
    )  # fmt: skip
    trainer.fit(Forecaster(), torch.utils.data.DataLoader(series(), batch_size=32, shuffle=True))
