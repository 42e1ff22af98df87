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


# A library serves one torch, so an image has a build of its own.
rule build_in_image:
    input:
        CSRC,
        OPERATOR,
        code("build"),
        "setup.py",
    output:
        result("build.json"),
    log:
        result("logs/build.log"),
    localrule: True
    conda:
        "../envs/experiment.yaml"
    container:
        image
    threads: workflow.cores
    params:
        path=path,
        package="build/{device}/online_softmax",
    shell:
        "(mkdir -p {params.package} && cp src/online_softmax/*.py {params.package}"
        " && python setup.py build_ext --build-lib build/{wildcards.device}"
        " --build-temp build/{wildcards.device}/objects"
        " && PYTHONPATH={params.path} python -m experiment.build --out {output})"
        " > {log} 2>&1"


rule environment:
    input:
        built,
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
    container:
        image
    resources:
        **PLACE,
    params:
        path=path,
        seed=config["seed"],
    shell:
        "PYTHONPATH={params.path} python -m experiment.environment"
        " --device {wildcards.device} --seed {params.seed}"
        " --out {output} > {log} 2>&1"
