"""Help texts of commands with many options."""

from typing import Any

from typer.core import TyperCommand


class GroupedCommand(TyperCommand):
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
