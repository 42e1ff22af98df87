# Every number of the paper: macros in values.tex, and one file a table.
rule write_tex:
    input:
        OPERATOR,
        code("tex", "views", "tables"),
        environment=result("environment.json"),
        benchmark=result("benchmark.csv"),
        samples=result("samples.csv"),
        verify=result("verify.csv"),
        claims=result("claims.csv"),
        published="reference/published.csv",
        seconds=parts("seconds", "txt"),
    output:
        result("tex/values.tex"),
        [result(f"tex/tables/{name}.tex") for name in TABLES],
    log:
        result("logs/tex.log"),
    localrule: True
    conda:
        "../envs/experiment.yaml"
    params:
        folder=lambda wildcards, output: Path(output[0]).parent,
    shell:
        "python -m experiment.tex --environment {input.environment} --benchmark {input.benchmark}"
        " --samples {input.samples} --verify {input.verify} --claims {input.claims}"
        " --published {input.published} --seconds {input.seconds} --out {params.folder}"
        " > {log} 2>&1"


# latexmk works in the folder of the generated files, where it finds them by their short names.
rule typeset_paper:
    input:
        "paper/paper.tex",
        "paper/artifact.tex",
        "paper/references.bib",
        rules.write_tex.output,
        rules.draw_figures.output.pdf,
        amd=rules.write_amd.output,
    output:
        report(
            result("paper.pdf"),
            caption="../report/paper.rst",
            category="1. Answer",
        ),
    log:
        result("logs/paper.log"),
    localrule: True
    conda:
        "../envs/experiment.yaml"
    params:
        folder=lambda wildcards, output: Path(output[0]).with_name("tex"),
        amd=lambda wildcards, input: Path(input.amd[0]).parent,
    shell:
        'export TEXINPUTS="$PWD/paper:$PWD/{params.amd}:" BIBINPUTS="$PWD/paper:"'
        " && (cd {params.folder} && latexmk -pdf -interaction=nonstopmode -halt-on-error paper.tex)"
        " > {log} 2>&1 && mv {params.folder}/paper.pdf {output}"


RESULTS = ["environment.json", "benchmark.csv", "claims.csv"]


# One paper of every device: those measured here and those whose results lie beside.
rule compare_devices:
    input:
        code("together", "figures", "tables", "tex", "views"),
        here(*RESULTS),
        expand("{folder}/{name}", folder=config["beside"], name=RESULTS),
    output:
        [f"{ROOT}/all/tex/{name}.tex" for name in ["values", *COMPARED]],
        [
            f"{ROOT}/all/figures/fractions.{extension}"
            for extension in ("pdf", "png", "svg")
        ],
    log:
        f"{ROOT}/logs/together.log",
    localrule: True
    conda:
        "../envs/experiment.yaml"
    params:
        results=here("") + config["beside"],
        folder=lambda wildcards, output: Path(output[0]).parents[1],
    shell:
        "python -m experiment.together {params.results} --out {params.folder} > {log} 2>&1"


rule typeset_comparison:
    input:
        "paper/all.tex",
        rules.compare_devices.output,
    output:
        f"{ROOT}/all/paper.pdf",
    log:
        f"{ROOT}/logs/together-paper.log",
    localrule: True
    conda:
        "../envs/experiment.yaml"
    params:
        folder=lambda wildcards, output: Path(output[0]).with_name("tex"),
    shell:
        'export TEXINPUTS="$PWD/paper:"'
        " && (cd {params.folder} && latexmk -pdf -interaction=nonstopmode -halt-on-error all.tex)"
        " > {log} 2>&1 && mv {params.folder}/all.pdf {output}"


# A second Snakemake that makes nothing: it reads the records of what this one has made so far.
rule render_report:
    input:
        "workflow/report/workflow.rst",
        rules.build.output,
        rules.write_summary.output,
        rules.draw_figures.output,
        rules.write_amd.output.svg,
        [result(name) for name in PAPER],
    output:
        result("report.html"),
    log:
        result("logs/report.log"),
    localrule: True
    conda:
        "../envs/experiment.yaml"
    params:
        targets=lambda wildcards, input: input[1:],
        configuration=same_configuration(),
    shell:
        "python -m snakemake {params.targets} --report {output} --nolock {params.configuration}"
        " > {log} 2>&1"


onsuccess:
    summary = Path(here("summary.md")[0])
    if summary.exists():
        print(f"\n{summary.read_text().splitlines()[0]}\nThe rest: {summary}")


# Snakemake keeps silent about an error where it is quiet about rules, as in the default profile. A
# job that never began has only the log of an earlier run.
BEGAN = time()


onerror:
    for path in sorted(
        {path for job in workflow.scheduler.failed for path in job.log}
    ):
        if Path(path).exists() and Path(path).stat().st_mtime > BEGAN:
            said = Path(path).read_text().splitlines()[-20:]
            print(f"\n{path} ends with:", *said, sep="\n  ", file=sys.stderr)
