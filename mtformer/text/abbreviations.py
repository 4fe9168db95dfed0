"""Abbreviations whose full stops end no sentence, as a name, a number or, in German, a noun follows them.

Those that often end one, such as "etc.", are left out, and so are those of single letters, as in "z.B.", which need no
list.
"""

from collections.abc import Sequence

from mtformer.text.languages import base_language

_ABBREVIATIONS = {
    "cs": "bc csc čl doc dr gen judr kap kpt mgr mjr mudr mvdr nám např obr odst ing phdr plk popř prof resp rndr str "
    "sv tab tel tj tř tzn tzv ul",
    "de": "abb abs allg anm art art.-nr aufl bd bes bio bsp bzgl bzw ca dipl dr ehem evtl exkl fam fr geb gem gest ggf "
    "hbf hl hr hrsg ing inkl insb jh jhd kap lfd lt max min mind mio mrd nr prof sek sog st std stk str tab tel "
    "tel.-nr tsd v.chr n.chr vgl zzgl zzt jan feb apr jun jul aug sep sept okt nov dez",
    "en": "adm al approx bros ca capt cf ch cmdr col cpl dept dr ed eds eq est excl ext fig figs ft gen gov hon "
    "incl lt maj messrs mr mrs ms mt no nos pp pres prof pt pvt rep rev sen sgt st tel viz vol vs jan feb "
    "mar apr jun jul aug sep sept oct nov dec",
    "es": "aprox arq art av avda cap cnel ctra dr dra dña ee ee.uu fig gral ing lic máx mín núm núms p.ej pág págs "
    "prof profa sr sra sras sres srta tel tfno tte ud uds vd vds vol ene feb abr jun jul ago sept oct nov dic",
    "fr": "av bd cf chap dr env fig lt me mgr mlle mlles mm mme mmes no p.ex pp pr prof réf st ste tél vol janv févr "
    "avr juil sept oct nov déc",
    "it": "arch art artt avv ca cap cfr dott dott.ssa es fig geom ing mons nn num on p.es pag pagg prof prof.ssa rag "
    "sig sig.na sig.ra sigg ss tel vol gen feb apr mag giu lug sett ott nov dic",
    "nl": "afb art bijv blz ca dhr dr drs ds excl fig hfst incl ing ir max mevr min mr mw nr nrs prof resp st tel vgl "
    "jan feb mrt apr jun jul aug sep sept okt nov dec",
    "pl": "al art dr dyr gen godz hab im inż kpt ks lek m.in mgr mjr np nr ok os pl płk por prof red rozdz rys str św "
    "tab tel tzn tzw ul ust",
    "pt": "aprox arq art av cap dr dra drs eng ex exma exmo fig máx mín núm p.ex pág págs prof profa sr sra sras srs "
    "srta tel vol jan fev abr jun jul ago out nov dez",
}


def abbreviations(language: str) -> Sequence[str]:
    """Return the abbreviations of a language in small letters, without their last full stops."""
    return _ABBREVIATIONS.get(base_language(language), "").split()
