VERIFY = (
    OPERATOR
    + code("verify", "inputs", "reference", "peers", "tables")
    + schema("verify")
)


# Before any timing: a wrong kernel should cost no benchmark.
rule verify_shape:
    input:
        built,
        VERIFY,
    output:
        verified=result("parts/verify/{entry}.csv"),
        seconds=result("parts/seconds/verify/{entry}.txt"),
    log:
        result("logs/verify/{entry}.log"),
    priority: 10
    conda:
        "../envs/experiment.yaml"
    container:
        image
    threads: workflow.cores
    resources:
        **PLACE,
    params:
        path=path,
        entry=entry_json,
        seed=config["seed"],
    shell:
        "PYTHONPATH={params.path} python -m experiment.verify"
        " --entry {params.entry:q} --device {wildcards.device}"
        " --seed {params.seed} --out {output.verified} > {log} 2>&1"
        " && echo $SECONDS > {output.seconds}"


rule verify_cases:
    input:
        built,
        VERIFY,
    output:
        verified=result("parts/verify/cases.csv"),
        seconds=result("parts/seconds/verify/cases.txt"),
    log:
        result("logs/verify/cases.log"),
    priority: 10
    conda:
        "../envs/experiment.yaml"
    container:
        image
    threads: workflow.cores
    resources:
        **PLACE,
    params:
        path=path,
        seed=config["seed"],
    shell:
        "PYTHONPATH={params.path} python -m experiment.verify"
        " --cases --device {wildcards.device} --seed {params.seed}"
        " --out {output.verified} > {log} 2>&1"
        " && echo $SECONDS > {output.seconds}"


rule verify_all:
    input:
        parts=parts("verify"),
        cases=result("parts/verify/cases.csv"),
    output:
        report(
            result("verify.csv"),
            caption="../report/verify.rst",
            category="3. Record",
        ),
    log:
        result("logs/verify.log"),
    localrule: True
    conda:
        "../envs/experiment.yaml"
    shell:
        "python -m experiment.verify --merge {input.parts} {input.cases} --out {output}"
        " > {log} 2>&1"
