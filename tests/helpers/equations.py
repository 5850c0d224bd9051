"""The network's equations, written again in float64 numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from moses_feature.networks.pair_network import PairNetwork
from moses_feature.networks.phrases import PackedSequences
from moses_feature.networks.vocabulary import END
from moses_feature.phrases.model import PhraseModel
from moses_feature.sentences.scorer import SentenceModel


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def reference_log_probs(model: PhraseModel, source: list[int], target: list[int]) -> np.ndarray:
    """Return log p of every target word and END, one word at a time, as the paper writes it."""
    p = {name: t.double().numpy() for name, t in model.network.state_dict().items()}
    hidden, unit = model.network.sizes.hidden, model.network.sizes.unit
    state = np.zeros(len(p["decoder_start.bias"]))
    for x in [*source, END]:
        if unit == "gru":
            state = _encoder_state(p, p["source_embedding.weight"][x], state)
        else:
            state = _unit_state(p, "encoder", p["source_embedding.weight"][x], state, 0.0)
    c = np.tanh(p["summary.weight"] @ state[:hidden] + p["summary.bias"])

    state = np.tanh(p["decoder_start.weight"] @ c + p["decoder_start.bias"])
    log_probs = []
    previous = END
    for y in [*target, END]:
        e = p["target_embedding.weight"][previous]
        if unit == "gru":
            state = _decoder_state(p, e, state, c)
        else:
            state = _unit_state(p, "decoder", e, state, p["decoder_summary.weight"] @ c)
        s = (
            p["maxout_state.weight"] @ state[:hidden]
            + p["maxout_state.bias"]
            + p["maxout_input.weight"] @ e
            + p["maxout_summary.weight"] @ c
        )
        s = np.maximum(s[0::2], s[1::2])
        logits = p["output_words.weight"] @ (p["output_rank.weight"] @ s) + p["output_words.bias"]
        log_probs.append(logits[y] - np.log(np.exp(logits).sum()))
        previous = y
    return np.array(log_probs)


def _encoder_state(p: dict[str, np.ndarray], e: np.ndarray, h: np.ndarray) -> np.ndarray:
    w_z, w_r, w = np.split(p["encoder_input.weight"], 3)
    b_z, b_r, b = np.split(p["encoder_input.bias"], 3)
    u_z, u_r = np.split(p["encoder_gates.weight"], 2)
    z = sigmoid(w_z @ e + u_z @ h + b_z)
    r = sigmoid(w_r @ e + u_r @ h + b_r)
    candidate = np.tanh(w @ e + p["encoder_candidate.weight"] @ (r * h) + b)
    return z * h + (1 - z) * candidate


def _decoder_state(
    p: dict[str, np.ndarray], e: np.ndarray, h: np.ndarray, c: np.ndarray
) -> np.ndarray:
    w_z, w_r, w = np.split(p["decoder_input.weight"], 3)
    b_z, b_r, b = np.split(p["decoder_input.bias"], 3)
    u_z, u_r, u = np.split(p["decoder_state.weight"], 3)
    c_z, c_r, c_h = np.split(p["decoder_summary.weight"], 3)
    z = sigmoid(w_z @ e + u_z @ h + c_z @ c + b_z)
    r = sigmoid(w_r @ e + u_r @ h + c_r @ c + b_r)
    candidate = np.tanh(w @ e + r * (u @ h + c_h @ c) + b)
    return z * h + (1 - z) * candidate


def _unit_state(
    p: dict[str, np.ndarray], side: str, e: np.ndarray, state: np.ndarray, summary: np.ndarray
) -> np.ndarray:
    """Return the next state of tanh, leaky or LSTM units."""
    u = p[f"{side}_state.weight"]
    hidden = u.shape[1]
    products = p[f"{side}_input.weight"] @ e + p[f"{side}_input.bias"] + u @ state[:hidden]
    products = products + summary
    if len(products) == hidden:
        return np.tanh(products)
    take, keep, show, new = np.split(products, 4)
    memory = sigmoid(keep) * state[hidden:] + sigmoid(take) * np.tanh(new)
    return np.concatenate([sigmoid(show) * np.tanh(memory), memory])


def feed_forward_log_probs(model: PhraseModel, source: list[int], target: list[int]) -> np.ndarray:
    """Return log p of every target word and END under a feed-forward network."""
    p = {name: t.double().numpy() for name, t in model.network.state_dict().items()}
    positions = model.network.sizes.positions
    read = [*source, *[END] * positions][:positions]
    embedded = np.concatenate([p["source_embedding.weight"][x] for x in read])
    hidden = np.tanh(p["hidden.weight"] @ embedded + p["hidden.bias"])
    second = np.tanh(p["second.weight"] @ hidden + p["second.bias"])
    log_probs = []
    for position, y in enumerate([*target, END]):
        output = f"output_words.{min(position, positions)}"
        logits = p[f"{output}.weight"] @ second + p[f"{output}.bias"]
        log_probs.append(logits[y] - np.log(np.exp(logits).sum()))
    return np.array(log_probs)


def random_pairs(model: PhraseModel, count: int, longest: int, seed: int = 3):
    generator = np.random.default_rng(seed)

    def phrase(words: int) -> list[int]:
        return generator.integers(1, words, generator.integers(0, longest + 1)).tolist()

    return [(phrase(len(model.source)), phrase(len(model.target))) for _ in range(count)]


def network_log_probs(network: PairNetwork, pairs) -> list[np.ndarray]:
    source, target = (PackedSequences.pack(side) for side in zip(*pairs, strict=True))
    rows = np.arange(len(pairs))
    tensors = [torch.from_numpy(a) for side in (source, target) for a in side.padded(rows, END)]
    with torch.no_grad():
        flat = network(*tensors)[0].numpy()
    return np.split(flat, np.cumsum([len(target) + 1 for _, target in pairs])[:-1])


def search_log_probs(
    model: PhraseModel, source: list[int], target: list[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Return log p of every target word and END under RNNsearch, and the alignments.

    As appendix A of Bahdanau et al. 2015 writes it, but that the update gate z is 1 - z there.
    """
    p = {name: t.double().numpy() for name, t in model.network.state_dict().items()}
    forward = _search_states(p, "forward", [*source, END])
    backward = _search_states(p, "backward", [END, *reversed(source)])[::-1]
    annotations = np.hstack([forward, backward])
    w_z, w_r, w = np.split(p["decoder_input.weight"], 3)
    b_z, b_r, b = np.split(p["decoder_input.bias"], 3)
    c_z, c_r, c_h = np.split(p["decoder_context.weight"], 3)
    u_z, u_r = np.split(p["decoder_gates.weight"], 2)
    state = np.tanh(p["decoder_start.weight"] @ backward[0] + p["decoder_start.bias"])
    log_probs, alignments = [], []
    previous = END
    for y in [*target, END]:
        query = p["alignment_state.weight"] @ state + p["alignment_state.bias"]
        energies = np.array(
            [
                p["alignment_energy.weight"][0]
                @ np.tanh(query + p["alignment_annotation.weight"] @ annotation)
                for annotation in annotations
            ]
        )
        alignment = np.exp(energies) / np.exp(energies).sum()
        context = alignment @ annotations
        e = p["target_embedding.weight"][previous]
        t = (
            p["maxout_state.weight"] @ state
            + p["maxout_state.bias"]
            + p["maxout_input.weight"] @ e
            + p["maxout_context.weight"] @ context
        )
        logits = p["output_words.weight"] @ np.maximum(t[0::2], t[1::2]) + p["output_words.bias"]
        log_probs.append(logits[y] - np.log(np.exp(logits).sum()))
        alignments.append(alignment)
        z = sigmoid(w_z @ e + u_z @ state + c_z @ context + b_z)
        r = sigmoid(w_r @ e + u_r @ state + c_r @ context + b_r)
        u = p["decoder_candidate.weight"]
        new = np.tanh(w @ e + u @ (r * state) + c_h @ context + b)
        state = z * state + (1 - z) * new
        previous = y
    return np.array(log_probs), np.array(alignments)


def _search_states(p: dict[str, np.ndarray], side: str, words: list[int]) -> np.ndarray:
    w_z, w_r, w = np.split(p[f"{side}_input.weight"], 3)
    b_z, b_r, b = np.split(p[f"{side}_input.bias"], 3)
    u_z, u_r = np.split(p[f"{side}_gates.weight"], 2)
    h = np.zeros(len(w))
    states = []
    for x in words:
        e = p["source_embedding.weight"][x]
        z = sigmoid(w_z @ e + u_z @ h + b_z)
        r = sigmoid(w_r @ e + u_r @ h + b_r)
        new = np.tanh(w @ e + p[f"{side}_candidate.weight"] @ (r * h) + b)
        h = z * h + (1 - z) * new
        states.append(h)
    return np.array(states)


def transformer_log_probs(model: PhraseModel, source: list[int], target: list[int]) -> np.ndarray:
    """Return log p of every target word and END; see `transformer_scores`."""
    return transformer_scores(model, source, target)[0]


def transformer_scores(
    model: PhraseModel, source: list[int], target: list[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Return log p of every target word and END under a Transformer (Vaswani et al. 2017).

    And return for each of them the shares of the source words and END in the first head of the last
    layer's attention.
    """
    features, first_head = transformer_features(model, source, target)
    log_probs = transformer_output(model, features)
    return log_probs[np.arange(len(log_probs)), [*target, END]], first_head


def transformer_output(model: PhraseModel, features: np.ndarray) -> np.ndarray:
    """Return log p (n, V) of all words after features (n, D)."""
    p = {name: t.double().numpy() for name, t in model.network.state_dict().items()}
    logits = features @ p["output_words.weight"].T + p["output_words.bias"]
    return logits - np.log(np.exp(logits).sum(1, keepdims=True))


def transformer_features(
    model: PhraseModel, source: list[int], target: list[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the inputs of the output layer, for every target word and END, and the first head.

    Each layer is normalised before it is computed (Xiong et al. 2020).
    """
    p = {name: t.double().numpy() for name, t in model.network.state_dict().items()}
    sizes = model.network.sizes
    read = _placed(p["source_embedding.weight"], [*source, END])
    for layer in range(sizes.encoder_layers):
        of = f"encoder.layers.{layer}."
        normal = _normal(p, f"{of}norm1", read)
        read = read + _attention(p, f"{of}self_attn.", sizes.heads, normal, normal, None)
        read = read + _inner(p, of, _normal(p, f"{of}norm2", read))
    read = _normal(p, "encoder.norm", read)
    written = _placed(p["output_words.weight"], [END, *target])
    later = np.triu(np.ones((len(written), len(written)), dtype=bool), 1)
    for layer in range(sizes.decoder_layers):
        of = f"decoder.layers.{layer}."
        normal = _normal(p, f"{of}norm1", written)
        written = written + _attention(p, f"{of}self_attn.", sizes.heads, normal, normal, later)
        normal = _normal(p, f"{of}norm2", written)
        first_head = _heads(p, f"{of}multihead_attn.", sizes.heads, normal, read, None)[0][0]
        written = written + _attention(p, f"{of}multihead_attn.", sizes.heads, normal, read, None)
        written = written + _inner(p, of, _normal(p, f"{of}norm3", written))
    return _normal(p, "decoder.norm", written), first_head


def _placed(embedding: np.ndarray, words: list[int]) -> np.ndarray:
    units = embedding.shape[1]
    rows = []
    for place, word in enumerate(words):
        angles = [place / 10_000 ** (2 * k / units) for k in range(units // 2)]
        rows.append(embedding[word] * units**0.5 + np.hstack([np.sin(angles), np.cos(angles)]))
    return np.array(rows)


def _normal(p: dict[str, np.ndarray], name: str, x: np.ndarray) -> np.ndarray:
    scaled = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    return scaled * p[f"{name}.weight"] + p[f"{name}.bias"]


def _attention(p: dict[str, np.ndarray], of: str, *given: Any) -> np.ndarray:
    found = [shares @ values for shares, values in _heads(p, of, *given)]
    return np.hstack(found) @ p[f"{of}out_proj.weight"].T + p[f"{of}out_proj.bias"]


def _heads(
    p: dict[str, np.ndarray],
    of: str,
    heads: int,
    x: np.ndarray,
    read: np.ndarray,
    hidden: np.ndarray | None,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the shares and the values of each head."""
    weights, biases = np.split(p[f"{of}in_proj_weight"], 3), np.split(p[f"{of}in_proj_bias"], 3)
    q, k, v = (y @ w.T + b for y, w, b in zip((x, read, read), weights, biases, strict=True))
    found = []
    for own_q, own_k, own_v in zip(*(np.split(y, heads, 1) for y in (q, k, v)), strict=True):
        energy = own_q @ own_k.T / np.sqrt(own_q.shape[1])
        if hidden is not None:
            energy[hidden] = -np.inf
        shares = np.exp(energy)
        found.append((shares / shares.sum(1, keepdims=True), own_v))
    return found


def _inner(p: dict[str, np.ndarray], of: str, x: np.ndarray) -> np.ndarray:
    inner = np.maximum(x @ p[f"{of}linear1.weight"].T + p[f"{of}linear1.bias"], 0)
    return inner @ p[f"{of}linear2.weight"].T + p[f"{of}linear2.bias"]


def assert_scored_alone(scorer: SentenceModel, pairs: list[tuple[list[int], list[int]]]) -> None:
    """Check that a score does not depend on the pairs beside it, but for rounding."""
    pairs = pairs + [(pairs[0][0], target) for _, target in pairs]
    whole = scorer.word_log_probs(pairs)
    count = len(pairs) // 2
    for first, last in ((0, 1), (3, 20), (count, 2 * count), (count + 9, count + 10)):
        alone = scorer.word_log_probs(pairs[first:last])
        for one, other in zip(alone, whole[first:last], strict=True):
            np.testing.assert_allclose(one, other, atol=1e-4)
