# Names for the stages on this machine's device: snakemake benchmark, snakemake paper, …
rule verify:
    input:
        here("verify.csv"),


rule benchmark:
    input:
        here("benchmark.csv", "samples.csv"),


rule claims:
    input:
        here("claims.csv"),


rule figures:
    input:
        [here(f"figures/{name}.pdf") for name in FIGURES],


rule paper:
    input:
        here(*PAPER),


rule report:
    input:
        here("report.html"),
