rule test_claims:
    input:
        code("claims", "views", "tables"),
        schema("claims"),
        benchmark=result("benchmark.csv"),
        samples=result("samples.csv"),
        verify=result("verify.csv"),
    output:
        report(
            result("claims.csv"),
            caption="../report/claims.rst",
            category="1. Answer",
        ),
    log:
        result("logs/claims.log"),
    localrule: True
    conda:
        "../envs/experiment.yaml"
    shell:
        "python -m experiment.claims --benchmark {input.benchmark} --samples {input.samples}"
        " --verify {input.verify} --out {output} > {log} 2>&1"


rule draw_figures:
    input:
        OPERATOR,
        code("figures", "views", "tables"),
        benchmark=result("benchmark.csv"),
    output:
        pdf=[result(f"figures/{name}.pdf") for name in FIGURES],
        png=[result(f"figures/{name}.png") for name in FIGURES],
        svg=[
            report(
                result(f"figures/{name}.svg"),
                caption=f"../report/{name}.rst",
                category="2. Figures",
            )
            for name in FIGURES
        ],
    log:
        result("logs/figures.log"),
    localrule: True
    conda:
        "../envs/experiment.yaml"
    params:
        folder=lambda wildcards, output: Path(output.pdf[0]).parent,
    shell:
        "python -m experiment.figures --benchmark {input.benchmark} --out {params.folder}"
        " > {log} 2>&1"


rule write_summary:
    input:
        code("summary", "views", "tables"),
        environment=result("environment.json"),
        benchmark=result("benchmark.csv"),
        claims=result("claims.csv"),
    output:
        report(
            result("summary.md"),
            caption="../report/summary.rst",
            category="1. Answer",
        ),
    log:
        result("logs/summary.log"),
    localrule: True
    conda:
        "../envs/experiment.yaml"
    shell:
        "python -m experiment.summary --environment {input.environment}"
        " --benchmark {input.benchmark} --claims {input.claims} --out {output} > {log} 2>&1"
