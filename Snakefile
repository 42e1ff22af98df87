"""The experiment: what to make, from which configuration. The steps are in workflow/rules.

snakemake                                    everything, for the machine it runs on
snakemake claims                             up to one stage: verify, benchmark, claims, figures,
                                             paper, report
snakemake --configfile config/smoke.yaml     the one-minute version, in results of its own
"""

from snakemake.utils import min_version

min_version("9.0")


# A file named on the command line replaces the declared experiment; it does not extend it.
if "groups" not in config:

    configfile: "config/experiment.yaml"


include: "workflow/rules/common.smk"


report: "workflow/report/workflow.rst"


wildcard_constraints:
    device=r"[a-z0-9]+(-[a-z0-9]+)*",
    entry=r"[\w-]+-\d+x\d+",


rule all:
    default_target: True
    input:
        here("summary.md", "report.html", *PAPER),
        TOGETHER,


include: "workflow/rules/build.smk"
include: "workflow/rules/verify.smk"
include: "workflow/rules/benchmark.smk"
include: "workflow/rules/analyse.smk"
include: "workflow/rules/codeobjects.smk"
include: "workflow/rules/publish.smk"
include: "workflow/rules/targets.smk"
