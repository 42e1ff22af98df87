"""What a lane moves, counted in listings small enough to count by hand."""

import pytest

from experiment import disassembly

LOOP = """
        v_mov_b32_e32 v8, 0
top:    global_load_dwordx4 v[0:3], v[4:5], off
        v_lshl_add_u64 v[6:7], v[4:5], 0, s[4:5]
        global_load_dwordx4 v[0:3], v[6:7], off
        {}
        v_lshl_add_u64 v[4:5], v[6:7], 0, s[4:5]
        v_cmp_gt_i64_e32 vcc, s[6:7], v[4:5]
        s_andn2_b64 exec, exec, vcc
        s_cbranch_execnz top
        s_endpgm
"""


def instructions(text):
    """Instructions of a text with labels, four bytes each, by way of a listing."""
    lines = [line for line in text.splitlines() if line.strip()]
    labels = {line.split(":")[0]: 4 * i for i, line in enumerate(lines) if line[0] != " "}
    listing = "0000000000001000 <kernel>:\n"
    for i, line in enumerate(lines):
        code = line.partition(":")[2].strip() if line[0] != " " else line.strip()
        aim = labels.get(code.split()[-1]) if "branch" in code else None
        to = "" if aim is None else f" <kernel+0x{aim:x}>"
        listing += f"\t{code}     // 00000000{0x1000 + 4 * i:X}: BF800000{to}\n"
    return disassembly.read(listing)["kernel"]


def reads(text, held=None):
    return disassembly.traffic(instructions(text), held).reads


def test_a_walk_reads_once_what_it_loads():
    assert disassembly.traffic(instructions(LOOP.format(""))) == (1, 0, 16, 0)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("global_load_dwordx4 v[0:3], v[4:5], off offset:16", 1),  # a third vector
        ("global_load_dwordx4 v[0:3], v[4:5], off", 1.5),  # one of the two, again
        ("global_load_dword v0, v[4:5], off offset:4", 1.125),
    ],
)
def test_a_walk_that_loads_more(more, expected):
    assert reads(LOOP.format(more)) == expected


def test_what_remains_of_an_unrolled_walk_is_no_walk_of_its_own():
    rest = """
        s_nop 0
rest:   global_load_dwordx4 v[0:3], v[4:5], off
        v_lshl_add_u64 v[4:5], v[4:5], 0, s[4:5]
        v_cmp_gt_i64_e32 vcc, s[8:9], v[4:5]
        s_andn2_b64 exec, exec, vcc
        s_cbranch_execnz rest
"""
    assert reads(rest + LOOP.format("")) == 1
    asks_each_time = "v_cmp_gt_i64_e32 vcc, s[6:7], v[4:5]"
    assert reads(rest + LOOP.format(asks_each_time)) == 2


def test_a_lane_takes_one_arm():
    arms = """
        s_and_saveexec_b64 s[0:1], vcc
        s_cbranch_execz else
        global_load_dwordx4 v[0:3], v[4:5], off
else:   s_andn2_saveexec_b64 s[0:1], s[0:1]
        s_cbranch_execz end
        global_load_dwordx4 v[0:3], v[6:7], off
end:    s_or_b64 exec, exec, s[0:1]
        s_endpgm
"""
    assert reads(arms, held=1) == 1
    assert reads(arms.replace("s_andn2_saveexec_b64 s[0:1], s[0:1]", "s_nop 0"), held=1) == 2


def test_a_branch_on_active_lanes_is_taken():
    arms = """
        s_cbranch_vccz else
        global_load_dwordx4 v[0:3], v[4:5], off
        s_cbranch_execnz end
else:   global_load_dwordx4 v[0:3], v[4:5], off
end:    s_endpgm
"""
    assert reads(arms, held=1) == 1
    unsure = arms.replace("s_cbranch_execnz", "s_mov_b64 exec, s[0:1]\n        s_cbranch_execnz")
    assert reads(unsure, held=1) == 2


def test_a_loop_that_counts_help_is_not_counted():
    helping = """
        global_load_dwordx4 v[0:3], v[4:5], off
        s_cbranch_scc1 end
help:   global_atomic_add_x2 v[8:9], v[10:11], off
        s_cbranch_scc1 help
        global_load_dwordx4 v[0:3], v[4:5], off
end:    s_endpgm
"""
    assert reads(helping, held=1) == 1
    assert reads(helping.replace("atomic_add_x2", "load_dwordx2"), held=1) == 2


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("global_load_dwordx4 v[0:3], v[4:5], off", "load", 16),
        ("global_load_b128 v[0:3], v[4:5], off", "load", 16),
        ("global_load_d16_hi_b16 v0, v[4:5], off", "load", 2),
        ("global_load_short_d16_hi v0, v[4:5], off", "load", 2),
        ("global_load_ushort v0, v[4:5], off", "load", 2),
        ("flat_load_b64 v[0:1], v[4:5]", "load", 8),
        ("buffer_store_dword v0, off, s[0:3], 0", "store", 4),
        ("global_store_b8 v[0:1], v2, off", "store", 1),
        ("global_store_byte v[0:1], v2, off", "store", 1),
        ("global_store_dwordx4 v[0:1], v[2:5], off", "load", None),
        ("ds_read_b128 v[0:3], v4", "load", None),
    ],
)
def test_width_of_an_access(text, kind, expected):
    assert disassembly.width(text, kind) == expected
