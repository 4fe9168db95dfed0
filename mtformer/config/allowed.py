"""What pydantic reports, in the words of our errors."""

from pydantic_core import ErrorDetails

from mtformer.config.directions import SOURCES


def allowed(details: ErrorDetails) -> str:
    """Describe the values that are allowed, by the type of the error."""
    context = details.get("ctx", {})
    match details["type"]:
        case "int_parsing" | "int_type" | "int_from_float" if "[number]" in details["loc"]:
            return "a whole number or auto"
        case "int_parsing" | "int_type" | "int_from_float":
            return "a whole number"
        case "float_parsing" | "float_type" | "finite_number":
            return "a finite number" if "inf" in str(details["input"]).lower() else "a number"
        case "bool_parsing" | "bool_type" if "[bool]" in details["loc"]:
            return "true, false or auto"
        case "bool_parsing" | "bool_type":
            return "true or false"
        case "string_type":
            return "text"
        case "list_type" if details["loc"][-1] in SOURCES:
            return "a list of sources, as in [{src: train.en, tgt: train.de}]"
        case "list_type":
            return f"a list, as in [{details['input']}]" if isinstance(details["input"], str) else "a list"
        case "model_type" | "dict_type" | "model_attributes_type":
            return "a mapping of keys to values"
        case "literal_error":
            return str(context["expected"]).replace("'", "")
        case "greater_than_equal":
            return f"{context['ge']} or more"
        case "greater_than":
            return f"more than {context['gt']}"
        case "less_than_equal":
            return f"{context['le']} or less"
        case "less_than":
            return f"less than {context['lt']}"
        case "string_too_long" | "string_too_short" if details["loc"][-1] == "delimiter":
            return "a single character"
        case "string_too_short":
            return "text that is not empty"
        case "too_short":
            return f"at least {context['min_length']} of them"
        case "string_pattern_mismatch" if details["loc"][-1] in ("src_lang", "tgt_lang"):
            return "a language code such as en, de or zh"
        case "string_pattern_mismatch" if "directions" in details["loc"]:
            return "a direction such as en-de, where the code of a language may have underscores, as in en-zh_Hant"
        case "string_pattern_mismatch" if details["loc"] == ("run", "name"):
            return "a folder's name, without slashes and not beginning with a dot or a blank"
        case "path_type":
            return "a path"
        case _:
            return details["msg"]
