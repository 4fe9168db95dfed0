"""Help texts of commands with many options, and hints at what may be meant by arguments."""

from typing import Any, ClassVar

from typer.core import TyperCommand


class Command(TyperCommand):
    """A command that refuses arguments that it does not take with a ``hint`` at what may be meant."""

    hint: ClassVar[str] = ""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments."""
        ctx.allow_extra_args = True
        extra = super().parse_args(ctx, args)
        if extra and not ctx.resilient_parsing:
            ctx.fail(f"unexpected arguments ({' '.join(extra)}){self.hint}")
        return extra


class TextCommand(Command):
    """A command whose argument is a text."""

    hint = ": put quotes around a text of several words"


class ConfigCommand(Command):
    """A command whose argument is a config."""

    hint = ": give one config, and set its keys with --set KEY=VALUE"


class SourceCommand(Command):
    """A command whose argument is a source of sentence pairs."""

    hint = ": write two files as src:FILE,tgt:FILE"


class GroupedCommand(Command):
    """A command whose help lists options by their ``rich_help_panel``, in the order in which the panels first occur.

    Typer itself does so only where rich formats the help.
    """

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, and the options of each panel."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                is_argument = parameter.param_type_name == "argument"
                panel = "Arguments" if is_argument else getattr(parameter, "rich_help_panel", None) or "Other"
                groups.setdefault(panel, []).append(record)
        for panel, records in groups.items():
            with formatter.section(panel):
                formatter.write_dl(records)


class GroupedTextCommand(GroupedCommand, TextCommand):
    """A command with many options whose argument is a text."""
