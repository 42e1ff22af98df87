# All providers of a shape in one job, with the whole machine: ratios share a process and a moment,
# and nothing runs beside them.
rule benchmark_shape:
    input:
        OPERATOR,
        code("benchmark", "timing", "inputs", "peers", "tables"),
        schema("benchmark", "samples"),
        build=built,
        environment=result("environment.json"),
        verified=result("parts/verify/{entry}.csv"),
    output:
        benchmark=result("parts/benchmark/{entry}.csv"),
        samples=result("parts/samples/{entry}.csv"),
        seconds=result("parts/seconds/{entry}.txt"),
    log:
        result("logs/benchmark/{entry}.log"),
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
        sampling=json.dumps(config["sampling"], sort_keys=True),
        seed=config["seed"],
    shell:
        "PYTHONPATH={params.path} python -m experiment.benchmark"
        " --entry {params.entry:q} --sampling {params.sampling:q}"
        " --device {wildcards.device} --seed {params.seed} --environment {input.environment}"
        " --verify {input.verified} --out {output.benchmark} --samples {output.samples}"
        " 2>&1 | tee {log} && echo $SECONDS > {output.seconds}"


rule benchmark_all:
    input:
        verified=result("verify.csv"),
        benchmark=parts("benchmark"),
        samples=parts("samples"),
    output:
        benchmark=report(
            result("benchmark.csv"),
            caption="../report/benchmark.rst",
            category="3. Record",
        ),
        samples=result("samples.csv"),
    log:
        result("logs/benchmark.log"),
    localrule: True
    conda:
        "../envs/experiment.yaml"
    shell:
        "(python -m experiment.benchmark --merge {input.benchmark} --out {output.benchmark}"
        " && python -m experiment.benchmark --merge-samples {input.samples} --out {output.samples})"
        " > {log} 2>&1"
