"""Recorded logs of the rule dtype-unsupported."""

HALF_PRECISION_ON_CPU = """Traceback (most recent call last):
  File "/train/t.py", line 15, in main
    model(torch.ones(4, 8).half())
  File "/env/site-packages/torch/nn/modules/linear.py", line 114, in forward
    return F.linear(input, self.weight, self.bias)
RuntimeError: "addmm_impl_cpu_" not implemented for 'Half'
"""

RANK_LOSS_IS_ON_INTEGERS = r"""
{"event":"process.end","rank":0,"failure":{"type":"RuntimeError","message":"\"nll_loss_out_frame\" not implemented for 'Int'","frames":[{"file":"/train/t.py","line":31,"function":"main"}]},"exit_code":1,"uncaught":true}
"""
