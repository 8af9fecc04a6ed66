"""Examples at the end of the help of each command."""

from __future__ import annotations

_ASKED = """\
workloads:
  all:3          every set of three attributes      all:3@1     at least 1 of 3 must match
  random:3:64    64 of them, by --workload-seed     all:1+all:2 both
  "age, sex; 2 of (age, sex, race)"                 file.json   {"thresholds": [{"attributes": [...]}, ...]}

histories (past queries):
  ["age=39, sex=Male", "2 of (age, sex, race)", {"attributes": ["age", "sex"], "r": 1, "count": 12}, ...]
"""

WHOLE = """\
examples:
  discreet demo
  discreet schema draft public.csv -o schema.json
  discreet plan people.csv --schema schema.json --workload all:3 --epsilon 1
  discreet release people.csv --schema schema.json --workload all:3 --epsilon 1 --out release
  discreet answer release "age=39, sex=Male" "2 of (age=39, sex=Male, race=White)"
  discreet evaluate release --data people.csv
"""

PLAN = (
    """\
examples:
  discreet plan people.csv --schema schema.json --workload all:3 --epsilon 1
  discreet plan people.csv --schema schema.json --workload random:3:64 --epsilon 0.1 --mechanism auto \\
           --mechanism gaussian
  discreet plan people.csv --schema schema.json --workload all:3 --epsilon 1 --neighbours add-remove --delta 1e-9 \\
           --people 50000                                        (a guess: the table is not read)
  discreet plan people.csv --schema schema.json --history past.json --augment 64 --epsilon 1

"""
    + _ASKED
)

RELEASE = (
    """\
examples:
  discreet release people.csv --schema schema.json --workload all:3 --epsilon 1 --out release
  discreet release people.parquet --schema schema.json --workload random:3:64 --epsilon 0.1 \\
           --mechanism rap --rounds 4 --per-round 16 --ledger people.ledger --out release-2
  discreet release people.csv --schema schema.json --workload "age, sex; 2 of (age, sex, race)" \\
           --epsilon 1 --neighbours add-remove --delta 1e-9 --out release-3
  discreet release people.csv --schema schema.json --history past.json --augment 64 --epsilon 1 --out release-7
  discreet release postgres://reader@db.example:5432/clinic --table people --schema schema.json \\
           --workload all:3 --epsilon 1 --out release-4          (the password: PGPASSWORD or ~/.pgpass)
  discreet release spark://local/data/people.parquet --schema schema.json --workload all:2 --epsilon 1 --out release-5
  discreet release large.parquet --memory 2GB --scratch /big/disk --schema schema.json --workload all:5 \\
           --epsilon 1 --out release-6

"""
    + _ASKED
)

EVALUATE = """\
examples:
  discreet evaluate release --data people.csv
  discreet evaluate release --data people.csv --future asked-since.json
  discreet evaluate release --data people.csv --predict income --holdout other-people.csv
"""

ANSWER = """\
examples:
  discreet answer release "age=39, sex=Male"
  discreet answer release --workload all:2 -o answers.parquet
"""

EXPERIMENT = """\
examples:
  discreet experiment --list
  discreet experiment present --data data --quick
  discreet experiment drift --data data --seeds 5 --out drift --resume
  discreet experiment drift --out drift --report-only

The data folder holds the tables that an experiment names, NAME.csv or NAME.parquet beside NAME-domain.json: adult for
most; for family also loans, adult-binned, adult-reduced and nltcs; the last two for intervals; for public, excerpts of
the American Community Survey. On two cores the quick grid takes minutes and the usual one an hour or two (family: an
hour or two, and half a day); the papers' whole grid (--full) was made for GPUs and takes weeks and more (family: a day,
since a cell has 20 minutes). Ctrl-C is safe: go on with --resume.
"""
