# What AMD's compiler makes of the kernels; it needs the compiler and no GPU, and no device's
# results depend on it. ROCM7_ROOT names a folder made by scripts/rocm7-rootfs, whose compiler
# knows every arch; else hipcc from PATH serves the archs that it knows.
rule codeobjects:
    input:
        CSRC,
        code("codeobjects", "tables"),
        schema("codeobjects"),
    output:
        f"{ROOT}/codeobjects.csv",
    log:
        f"{ROOT}/logs/codeobjects.log",
    conda:
        "../envs/experiment.yaml"
    threads: workflow.cores
    shell:
        'python -m experiment.codeobjects ${{ROCM7_ROOT:+--root "$ROCM7_ROOT"}} --gate'
        " --out {output} > {log} 2>&1"
