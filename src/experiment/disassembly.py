"""A kernel's machine code as a graph of basic blocks, and the bytes that a lane moves through it.

What is counted is the heaviest path that a lane can take: of two arms only one, of a loop one
round. Two facts about AMD's control flow tell arms from parts. A block runs only where some lane
is active, so `s_cbranch_execnz` always jumps unless its own block changed `exec`; and a block that
opens with `s_andn2_saveexec` is the else of the arm before it, which that arm's lanes skip.

    held    straight-line code: whole vectors moved, over the vectors that a lane holds.
    walk    an innermost loop that moves whole vectors: the bytes of a round, over those of the
            different vectors in it. A compiler may unroll a walk and leave what remains to a loop
            of one vector a round ahead of it: such a pair is one walk.

So every walk over a row counts, and everything that is moved twice in one. Not seen: in
straight-line code, accesses narrower than a vector; they belong to a row's edges.
"""

import re
from typing import NamedTuple

import networkx as nx

VECTOR_BYTES = 16


class Instruction(NamedTuple):
    address: int  # from the kernel's start
    text: str
    target: int | None  # of a branch


def read(listing):
    """The instructions of each symbol in what `llvm-objdump -d` says."""
    found = {}
    for line in listing.splitlines():
        if symbol := re.match(r"([0-9a-f]+) <(.+)>:", line):
            start, instructions = int(symbol[1], 16), found.setdefault(symbol[2], [])
        elif at := re.match(r"\t(.+?) *// 0*([0-9A-F]+):", line):
            aim = re.search(r"<[^>+]+(?:\+0x([0-9a-f]+))?>$", line)
            instructions.append(
                Instruction(int(at[2], 16) - start, at[1], aim and int(aim[1] or "0", 16))
            )
    return found


#: Bytes by how a load or store is called: dwordx4 up to gfx10, b128 from gfx11.
WIDTHS = {"dwordx4|b128": 16, "dwordx3|b96": 12, "dwordx2|b64": 8, "dword|b32": 4, "short|16": 2}


def width(text, kind):
    """The bytes that an instruction moves between a lane and device memory; None: not of `kind`."""
    opcode = re.match(rf"(?:global|flat|buffer)_{kind}_(\w+)", text)
    return opcode and next((n for name, n in WIDTHS.items() if re.search(name, opcode[1])), 1)


# --------------------------------------------------------------------------------- the graph


def flow(instructions):
    """The basic blocks that a lane can reach: nodes are addresses, `texts` their instructions."""
    leaders = {0} | {i.target for i in instructions if i.target is not None}
    graph = nx.DiGraph()
    block = before = None
    for address, text, target in instructions:
        if address in leaders or block is None:
            graph.add_node(address, texts=[])
            if before is not None:
                graph.add_edge(before, address, falls=True)
            block = before = address
        texts(graph, block).append(text)
        if re.match(r"s_(c?branch|endpgm|setpc)", text):
            if target is not None:
                graph.add_edge(block, target)
            always = text.startswith("s_cbranch_execnz") and not any(
                map(writes_exec, texts(graph, block))
            )
            if always or not text.startswith("s_cbranch"):
                before = None
            block = None
    skip_else_arms(graph)
    return graph.subgraph({0} | nx.descendants(graph, 0)).copy()


def writes_exec(text):
    return re.match(r"v_cmpx|s_\w+_saveexec|s_\w+ exec(_lo|_hi)?,", text)


def skip_else_arms(graph):
    """Lead a lane that falls into an else to where the else ends."""
    for into, arm in [edge for edge in graph.edges if graph.edges[edge].get("falls")]:
        opening = next(t for t in texts(graph, arm) if not re.match(r"s_(wait|delay|nop)", t))
        if re.match(r"s_and(n2|_not1)_saveexec", opening):
            ends = [end for end in graph.successors(arm) if not graph.edges[arm, end].get("falls")]
            graph.remove_edge(into, arm)
            graph.add_edges_from((into, end) for end in ends)


def loops(graph):
    """(header, nodes, whether it holds no other) of every loop."""
    for nodes in nx.strongly_connected_components(graph):
        if graph.subgraph(nodes).number_of_edges():
            entries = [n for n in nodes if set(graph.predecessors(n)) - nodes]
            header = min(entries or nodes)
            body = without_back_edges(graph.subgraph(nodes), [(header, nodes)])
            inner = list(loops(body))
            yield header, nodes, not inner
            yield from inner


def without_back_edges(graph, loops_):
    graph = nx.DiGraph(graph)
    for header, nodes, *_ in loops_:
        graph.remove_edges_from([edge for edge in graph.in_edges(header) if edge[0] in nodes])
    return graph


def heaviest(graph, weight):
    """The path of greatest weight (weight(node): a tuple) through an acyclic graph."""
    best = {}
    for node in nx.topological_sort(graph):
        before, path = max((best[other] for other in graph.predecessors(node)), default=(None, []))
        own = weight(node)
        best[node] = tuple(map(sum, zip(before, own))) if before else own, [*path, node]
    return max(best.values())[1]


# ---------------------------------------------------------------------------- what it moves


class Traffic(NamedTuple):
    """What a path costs an element of an aligned row."""

    reads: float
    writes: float
    load_bytes: int  # an access; 0: none
    store_bytes: int


def traffic(instructions, held=None):
    """The Traffic of a kernel; `held`: the vectors that a lane holds, where it does."""
    graph = flow(instructions)
    return of_held(graph, held) if held else of_walks(graph)


def of_held(graph, held):
    # gang helps in a loop that counts what it helped, and goes on from there: the rare path.
    rare = {
        node
        for _, nodes, _ in loops(graph)
        if any(re.match(r"(global|flat)_atomic_add", text) for text in code(graph, nodes))
        for node in nodes
    }
    graph = graph.subgraph(set(graph) - rare)
    graph = graph.subgraph({0} | nx.descendants(graph, 0))
    loaded, load_bytes = widest_moved(graph, "load")
    stored, store_bytes = widest_moved(graph, "store")
    vectors = held * VECTOR_BYTES
    return Traffic(loaded / vectors, stored / vectors, load_bytes, store_bytes)


def widest_moved(graph, kind):
    """The bytes that a path moves by accesses of the greatest width in the graph; and that width."""
    widest = max(widths(code(graph, graph), kind), default=0)

    def moved(node):
        return sum(bytes_ for bytes_ in widths(texts(graph, node), kind) if bytes_ == widest)

    path = heaviest(without_back_edges(graph, loops(graph)), lambda node: (moved(node),))
    return sum(map(moved, path)), widest


def of_walks(graph):
    found = list(loops(graph))
    walks = {}
    for header, nodes, innermost in found:
        if innermost and any(map(is_vector, code(graph, nodes))):
            walks[header] = Walk(without_back_edges(graph.subgraph(nodes), [(header, nodes)]))

    def weight(node):
        return (walks[node].bytes("load") + walks[node].bytes("store") if node in walks else 0,)

    path = heaviest(without_back_edges(graph, found), weight)
    whole, unfinished = [], False
    for walk in (walks[node] for node in reversed(path) if node in walks):
        if not (unfinished and walk.vectors == 1):
            whole.append(walk)
        unfinished = walk.tests < walk.vectors
    return Traffic(
        sum(walk.times("load") for walk in whole),
        sum(walk.times("store") for walk in whole),
        min(filter(None, (walk.width("load") for walk in whole)), default=0),
        min(filter(None, (walk.width("store") for walk in whole)), default=0),
    )


class Walk:
    """A round of a loop, along its heaviest path; of equals the one of the fewest accesses."""

    def __init__(self, body):
        def weight(node):
            moved = [w for kind in ("load", "store") for w in widths(texts(body, node), kind)]
            return sum(moved), -len(moved)

        self.texts = code(body, heaviest(body, weight))
        self.vectors = max(self.addresses("load"), self.addresses("store"))
        # One a vector where the unrolled loop asks each time whether the row has ended.
        self.tests = sum(bool(re.match(r"v_cmpx?_\w+_[iu]64", text)) for text in self.texts)

    def bytes(self, kind):
        return sum(widths(self.texts, kind))

    def width(self, kind):
        moved = widths(self.texts, kind)
        return sum(moved) // len(moved) if moved else 0

    def times(self, kind):
        """How often an element is moved."""
        return self.bytes(kind) / (VECTOR_BYTES * self.vectors)

    def addresses(self, kind):
        """How many different vectors are moved: by address registers and when they were set."""
        found, set_at = set(), {}
        for time, text in enumerate(self.texts):
            opcode, _, operands = text.partition(" ")
            first, *rest = operands.split(", ")
            if width(text, kind) == VECTOR_BYTES:
                address = rest if kind == "load" else [first, *rest[1:]]
                found.add((*address, *(set_at.get(r) for a in address for r in registers(a))))
            if not re.match(r"v_cmpx|s_cmp|(global|flat|buffer|ds)_(store|write)", opcode):
                set_at |= dict.fromkeys(registers(first), time)
        return len(found)


def registers(operand):
    """v4 and v5 of v[4:5]."""
    found = re.match(r"([vs])(?:(\d+)|\[(\d+):(\d+)\])", operand)
    if not found:
        return []
    first, last = found[2] or found[3], found[2] or found[4]
    return [f"{found[1]}{number}" for number in range(int(first), int(last) + 1)]


def is_vector(text):
    return VECTOR_BYTES in (width(text, "load"), width(text, "store"))


def widths(found, kind):
    return [bytes_ for text in found if (bytes_ := width(text, kind))]


def texts(graph, node):
    return graph.nodes[node]["texts"]


def code(graph, nodes):
    return [text for node in nodes for text in texts(graph, node)]
