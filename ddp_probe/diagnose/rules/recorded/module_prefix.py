"""Recorded logs of the rule module-prefix."""

WEIGHTS_OF_WRAPPED_MODEL_ARE_LOADED = r"""
{"event":"process.start","rank":0,"role":"solo"}
{"event":"checkpoint.load","phase":"begin","rank":0,"span":2,"site":{"file":"/train/11_module_prefix.py","line":20,"function":"main"},"file":{"path":"last.pth"}}
{"event":"checkpoint.load","phase":"end","rank":0,"span":2,"file":{"path":"last.pth","kind":"zip"}}
{"event":"process.end","rank":0,"failure":{"type":"RuntimeError","message":"Error(s) in loading state_dict for TinyModel:\n\tMissing key(s) in state_dict: \"backbone.0.weight\", \"backbone.0.bias\", \"head.weight\", \"head.bias\". \n\tUnexpected key(s) in state_dict: \"module.backbone.0.weight\", \"module.backbone.0.bias\", \"module.head.weight\", \"module.head.bias\". ","frames":[{"file":"/train/11_module_prefix.py","line":24,"function":"<module>"},{"file":"/train/11_module_prefix.py","line":20,"function":"main"},{"file":"/env/site-packages/torch/nn/modules/module.py","line":2638,"function":"Module.load_state_dict"}]},"exit_code":1,"uncaught":true}
"""

LAYER_IS_MISSING_FROM_CHECKPOINT = r"""
{"event":"process.end","rank":0,"exit_code":1,"uncaught":true,"failure":{"type":"RuntimeError","message":"Error(s) in loading state_dict for TinyModel:\n\tMissing key(s) in state_dict: \"head.weight\". \n\tUnexpected key(s) in state_dict: \"classifier.weight\". "}}
"""
