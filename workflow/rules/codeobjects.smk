# What AMD's compiler makes of the kernels; it needs the compiler and no GPU, and no device's
# results depend on it. ROCM7_ROOT names a folder made by scripts/rocm7-rootfs, whose compiler
# knows every arch; else this machine's hipcc serves the archs that it knows. What breaks a gate is
# said in the log and stops no measurement: the gates are `make test-amd`.
rule codeobjects:
    input:
        CSRC,
        code("codeobjects", "disassembly", "tables"),
        schema("codeobjects"),
    output:
        report(
            f"{ROOT}/codeobjects.csv",
            caption="../report/codeobjects.rst",
            category="4. AMD, not measured",
        ),
    log:
        f"{ROOT}/logs/codeobjects.log",
    localrule: True
    conda:
        "../envs/experiment.yaml"
    threads: workflow.cores
    shell:
        'python -m experiment.codeobjects ${{ROCM7_ROOT:+--root "$ROCM7_ROOT"}}'
        " --out {output} > {log} 2>&1"


# What a model expects of AMD GPUs; a first run on one refutes it or does not.
rule predict:
    input:
        f"{ROOT}/build.json",
        OPERATOR,
        code("predicted", "claims", "tables"),
        schema("predicted"),
        gpus="reference/amd-gpus.csv",
    output:
        report(
            f"{ROOT}/predicted.csv",
            caption="../report/predicted.rst",
            category="4. AMD, not measured",
        ),
    log:
        f"{ROOT}/logs/predicted.log",
    localrule: True
    conda:
        "../envs/experiment.yaml"
    shell:
        "python -m experiment.predicted --gpus {input.gpus} --out {output} > {log} 2>&1"


rule write_amd:
    input:
        OPERATOR,
        code("amd", "codeobjects", "figures", "predicted", "tables", "tex", "views"),
        codeobjects=CODEOBJECTS,
        predicted=f"{ROOT}/predicted.csv",
        published="reference/published.csv",
    output:
        tex=[
            f"{ROOT}/amd/{name}.tex"
            for name in ["amd", *(f"tables/{table}" for table in AMD_TABLES)]
        ],
        figures=[f"{ROOT}/amd/occupancy.{extension}" for extension in ("pdf", "png")],
        svg=report(
            f"{ROOT}/amd/occupancy.svg",
            caption="../report/occupancy.rst",
            category="4. AMD, not measured",
        ),
    log:
        f"{ROOT}/logs/amd.log",
    localrule: True
    conda:
        "../envs/experiment.yaml"
    params:
        folder=lambda wildcards, output: Path(output.svg).parent,
    shell:
        "python -m experiment.amd --codeobjects {input.codeobjects} --predicted {input.predicted}"
        " --published {input.published} --tex {params.folder} --figures {params.folder}"
        " > {log} 2>&1"
