rule build:
    input:
        CSRC,
        OPERATOR,
        code("build"),
        "setup.py",
    output:
        f"{ROOT}/build.json",
    log:
        f"{ROOT}/logs/build.log",
    localrule: True
    conda:
        "../envs/experiment.yaml"
    threads: workflow.cores
    shell:
        "(python setup.py build_ext --inplace && python -m experiment.build --out {output})"
        " > {log} 2>&1"


rule environment:
    input:
        f"{ROOT}/build.json",
        code("environment", "tables"),
    output:
        report(
            result("environment.json"),
            caption="../report/environment.rst",
            category="3. Record",
        ),
    log:
        result("logs/environment.log"),
    conda:
        "../envs/experiment.yaml"
    resources:
        **PLACE,
    params:
        seed=config["seed"],
    shell:
        "python -m experiment.environment --device {wildcards.device} --seed {params.seed}"
        " --out {output} > {log} 2>&1"
