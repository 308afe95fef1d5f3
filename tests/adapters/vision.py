"""Vision Transformers: timm's, and a small one of the same form for where timm is not installed."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

__all__ = ["HEADS", "WIDTH", "Form", "import_timm", "vit"]

WIDTH, HEADS, PATCH = 12, 3, 4


def import_timm() -> Any:
    """timm, or a skipped test."""
    try:
        import timm
    except (ImportError, RuntimeError) as error:  # torchvision, which it needs, may be of another PyTorch
        pytest.skip(f"needs timm ({error})")
    return timm


def vit(kind: str, **options: Any) -> Any:
    """A model with a class token, two registers, images of any size, and random numbers everywhere."""
    torch.manual_seed(0)
    if kind == "form":
        made: nn.Module = Form(**options)
    else:
        sizes = {"img_size": 16, "patch_size": PATCH, "embed_dim": WIDTH, "depth": 2, "num_heads": HEADS}
        made = import_timm().models.VisionTransformer(
            **sizes, num_classes=5, reg_tokens=2, dynamic_img_size=True, **options
        )
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.3)
    return made.eval()


class Attention(nn.Module):
    """Self-attention as timm has it."""

    def __init__(self) -> None:
        super().__init__()
        self.num_heads, self.fused_attn = HEADS, True
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, attn_mask: Tensor | None = None, is_causal: bool = False) -> Tensor:
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, HEADS, d // HEADS).permute(2, 0, 3, 1, 4)
        if self.fused_attn:
            mixed = scaled_dot_product_attention(q, k, v, attn_mask=attn_mask, is_causal=is_causal)
        else:
            mixed = ((q @ k.transpose(-1, -2)) / (d // HEADS) ** 0.5).softmax(-1) @ v
        out: Tensor = self.proj(mixed.transpose(1, 2).reshape(b, n, d))
        return out


class Block(nn.Module):
    """Attention with a residual connection."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(WIDTH), Attention()

    def forward(self, x: Tensor, attn_mask: Tensor | None = None, is_causal: bool = False) -> Tensor:
        out: Tensor = x + self.attn(self.norm1(x), attn_mask=attn_mask, is_causal=is_causal)
        return out


class Patches(nn.Module):
    """Images (b, 3, H, W) to patches (b, h, w, d)."""

    def __init__(self) -> None:
        super().__init__()
        self.proj = nn.Conv2d(3, WIDTH, PATCH, PATCH)

    def forward(self, images: Tensor) -> Tensor:
        out: Tensor = self.proj(images).movedim(1, 3)
        return out


class Form(nn.Module):
    """The form that the adapter needs, and a head."""

    def __init__(self, drop: bool = False, learned: bool = False) -> None:
        super().__init__()
        self.pos_embed = nn.Parameter(torch.zeros(1, 3, WIDTH)) if learned else None
        self.embed_dim, self.num_prefix_tokens, self.grad_checkpointing, self.drop = WIDTH, 3, False, drop
        self.patch_embed, self.prefix = Patches(), nn.Parameter(torch.zeros(1, 3, WIDTH))
        self.blocks, self.head = nn.Sequential(Block(), Block()), nn.Linear(WIDTH, 5)

    def set_grad_checkpointing(self, enable: bool = True) -> None:
        self.grad_checkpointing = enable

    def forward(self, images: Tensor, attn_mask: Tensor | None = None, is_causal: bool = False) -> Tensor:
        patches = self.patch_embed(images).flatten(1, 2)
        prefix = self.prefix if self.pos_embed is None else self.prefix + self.pos_embed
        if self.pos_embed is not None:
            patches = patches + self.pos_embed.sum(1) * torch.arange(patches.shape[1])[:, None]
        x = torch.cat([prefix.expand(len(images), -1, -1), patches[:, 1:] if self.drop else patches], dim=1)
        for block in self.blocks:
            if self.grad_checkpointing and self.training:
                x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x, attn_mask=attn_mask, is_causal=is_causal)
        out: Tensor = self.head(x[:, 0])
        return out
