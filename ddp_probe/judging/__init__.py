"""From one Run to findings: rules, one file each, and the judge that asks them all."""
