"""Parts of two installations meet in one process: a compiled part was built for another torch than the imported one."""

from ddp_probe.judging.rule import Printed, Rule
from ddp_probe.judging.vendor_words import PLUGIN_LIBRARY
from ddp_probe.judging.who import RAISED

RULE = Rule(
    id="DDP803",
    slug="mixed-installations",
    cause="mixed_installations",
    title="Parts of two installations meet in one process.",
    symptom=(
        "'undefined symbol' on import, 'partially initialized module', an attribute of torch._C that is not there, or an extension that reports "
        "another build."
    ),
    evidence="The message of the loader or of Python; compare torch.__file__, the extension's __file__ and LD_LIBRARY_PATH.",
    remedy=(
        "Install torch and what was compiled against it (torchvision, mmcv, the vendor's plugin, NCCL) together in one empty environment; "
        "remove other installations from PYTHONPATH and LD_LIBRARY_PATH; start outside the source folder of torch."
    ),
    restart="no",  # The environment stays mixed.
    needs=("process.end",),
    printed=(
        Printed(
            r"(?:%s|symbol lookup error[^\n]*)undefined symbol: (?P<symbol>\w+)" % RAISED,
            unless=PLUGIN_LIBRARY,
            says="A compiled part needs {symbol}, which the loaded library does not have.",
        ),
        Printed(
            r"(?m:^)(?![^\n]*(?:[Ww]arn|Failed to load image))[^\n]*\.so(?:\.[\d.]+)?: undefined symbol: (?P<symbol>\w+)",
            unless=PLUGIN_LIBRARY,
            says="A compiled part needs {symbol}, which the loaded library does not have.",
        ),
        Printed(
            RAISED + r"(?P<library>lib(?:torch|c10)\w*\.so)[\w.]*: cannot open shared object file",
            says="A compiled part needs {library} from another torch than the installed one.",
        ),
        Printed(
            r"(?P<library>lib[\w.+-]{1,60}\.so[\w.]*): cannot allocate memory in static TLS block",
            says="{library} is loaded too late, most often after another copy of it: import torch first, or name it in LD_PRELOAD.",
        ),
        Printed(r"(?:cannot allocate|version [`'\"]?(?:GLIBC|GLIBCXX|CXXABI)[\w.]*['\"]? not found|symbol lookup error)", unless=r"memory"),
        Printed(
            r"has no attribute '(?P<name>_(?:init_names|initExtension|set_default_tensor_type|jit_\w+|dynamo|_C|storage_classes))'",
            beside=r"torch[/\\]__init__|torch\._C|torch[/\\]_",
        ),
        Printed(
            r"partially initialized module '(?P<module>torch\w*(?:\.\w+)*|mm\w+(?:\.\w+)*)' has no attribute",
            says="{module} is imported while it is being imported: another file or installation of that name comes first.",
        ),
        Printed(
            (
                r"cannot import name '(?:_C\w*|_ext|\w+_cuda|_version|version"
                r"|__version__)' from (?:partially initialized module )?'(?P<module>[\w.]+)'[^\n]{0,80}\((?![^\n)]*(?:site"
                r"|dist)-packages)(?P<path>/[^\n)]+)\)"
            ),
            says="{module} comes from the source tree at {path}, which has no compiled part and comes before the installed package on sys.path.",
        ),
        Printed(
            r"No module named '(?P<module>\w+\.(?:_C\w*|_ext|_version|version|lib\w*|\w*_cuda)|amp_C|\w+_C|\w+_cuda)'",
            beside=r"(?:^|\n)(?!(?:[^\n]{0,200}(?:site|dist)-packages))[^\n]{0,200}[/\\](?P<tree>\w+)[/\\](?P=tree)[/\\][^\n]{0,80}\.py:\d",
            says="{module} is not found: a source tree without compiled parts comes before the installed package on sys.path.",
        ),
        Printed(
            r"No module named '(?P<module>torch_\w+)\._C\w*'",
            nowhere=r"(?:site|dist)-packages[/\\]torch_",
            says="{module} comes from a source tree without compiled parts, which comes before the installed package on sys.path.",
        ),
        Printed(
            r"cannot import name '\w+' from '(?P<module>[\w.]+)' \(unknown location\)",
            says="{module} is a folder without an __init__.py: it comes before the installed package on sys.path.",
        ),
        Printed(
            r"you should not try to import (?P<module>numpy) from\s{1,20}its source directory",
            says="{module} comes from its source tree, which comes before the installed package on sys.path.",
        ),
        Printed(r"No module named 'torch\._C|[Ff]ailed to load PyTorch C extensions|cannot import name '\w+' from 'torch\._C'"),
        Printed(
            r"operator torchvision::\w+ does not exist|[Cc]ouldn't load custom C\+\+ ops|torchvision[^\n]*compiled with different CUDA"
            r"|compiled with different CUDA (?:major )?versions"
        ),
        Printed(
            r"Error: (?:numpy\.(?:dtype|ndarray) size changed|module compiled against (?:API|ABI) version|Numpy is not available"
            r"|numpy\.core\.multiarray failed to import)"
        ),
        Printed(
            r"Invalid config blocking attribute value -\d+",
            says=(
                "torch was built with another NCCL than the one that is loaded: its settings have another form (LD_LIBRARY_PATH, "
                "LD_PRELOAD, pip list)."
            ),
            ranks=False,
        ),
        Printed(r"already has an? (?:kernel|operator|schema) registered|Only a single TORCH_LIBRARY can be used to register the namespace"),
    ),
)
