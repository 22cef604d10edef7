"""Charts and diagrams in presentations and Word documents are read at their positions."""

import io
import zipfile

import docx
import pptx
import pytest
from docx.opc import packuri as word_packuri
from docx.opc import part as word_part
from docx.oxml import parse_xml as parse_word_xml
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.opc.constants import RELATIONSHIP_TYPE as RT
from pptx.opc.package import Part
from pptx.opc.packuri import PackURI
from pptx.oxml import parse_xml
from pptx.oxml.ns import nsdecls

from unit.engines.files.file_reader import text_of
from unit.engines.files.formats.ooxml.test_package import strict
from unit.engines.files.sample_files import saved
from vademecum.engines.files.formats.ooxml import docx as word
from vademecum.engines.files.formats.ooxml import zip_container
from vademecum.engines.files.result import Limits

CHART = ["Paid in May", "\tEast\tWest", "Rent\t1.5\t2.5", "Heating\t3\t4"]
DIAGRAM = ["Sign the lease", "in May", "Pay the rent"]
_CHARTS, _DIAGRAMS = (
    f"http://schemas.openxmlformats.org/drawingml/2006/{kind}" for kind in ("chart", "diagram")
)
_DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
_POINT = '<dgm:pt modelId="%s"%s><dgm:t><a:bodyPr/>%s</dgm:t></dgm:pt>'
_PARAGRAPH = "<a:p><a:r><a:t>%s</a:t></a:r><a:r><a:t>%s</a:t></a:r></a:p>"


def charted():
    deck = pptx.Presentation()
    data = CategoryChartData()
    data.categories = ["East", "West"]
    data.add_series("Rent", (1.5, 2.5))
    data.add_series("Heating", (3, 4))
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    chart = slide.shapes.add_chart(XL_CHART_TYPE.BAR_CLUSTERED, 0, 0, 99, 99, data).chart
    chart.chart_title.text_frame.text = "Paid in May"
    return saved(deck)


def _points():
    """Return the XML of a diagram as PowerPoint and Word store it."""
    points = (
        _POINT % (1, ' type="doc"', "<a:p/>"),
        _POINT % (2, "", _PARAGRAPH % ("Sign ", "the lease") + _PARAGRAPH % ("in", " May")),
        _POINT % (3, ' type="parTrans"', _PARAGRAPH % ("UNSEEN", "")),
        _POINT % (4, ' type="node"', _PARAGRAPH % ("Pay the rent", "")),
        _POINT % (5, ' type="pres"', _PARAGRAPH % ("UNSEEN", "")),
    )
    names = f'xmlns:dgm="{_DIAGRAMS}" xmlns:a="{_DRAWING}"'
    return f"<dgm:dataModel {names}><dgm:ptLst>{''.join(points)}</dgm:ptLst></dgm:dataModel>".encode()


def diagrammed():
    """Create a slide with SmartArt, which python-pptx cannot create by itself."""
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    slide.shapes.title.text = "Steps"
    kind = "application/vnd.openxmlformats-officedocument.drawingml.diagramData+xml"
    part = Part(PackURI("/ppt/diagrams/data1.xml"), kind, slide.part.package, _points())
    related = slide.part.relate_to(part, RT.DIAGRAM_DATA)
    frame = slide.shapes.add_table(1, 1, 0, 0, 9, 9)._element
    graphic = frame.find(".//{*}graphicData")
    graphic.set("uri", _DIAGRAMS)
    for table in list(graphic):
        graphic.remove(table)
    graphic.append(parse_xml(f'<dgm:relIds xmlns:dgm="{_DIAGRAMS}" {nsdecls("r")} r:dm="{related}"/>'))
    return saved(deck)


def word_drawn(about=""):
    """Create a DOCX with a chart, a diagram, the chart again and a missing chart. `about`: drawing attributes."""
    document = docx.Document()
    with zipfile.ZipFile(io.BytesIO(charted())) as deck:
        chart = next(deck.read(name) for name in deck.namelist() if name.startswith("ppt/charts/chart"))
    shown = {}
    for name, content, kind in (
        ("charts/chart1", chart, RT.CHART),
        ("diagrams/data1", _points(), RT.DIAGRAM_DATA),
    ):
        place = word_packuri.PackURI(f"/word/{name}.xml")
        part = word_part.Part(place, "application/xml", content, document.part.package)
        shown[name] = document.part.relate_to(part, kind)
    names = f'xmlns:c="{_CHARTS}" xmlns:dgm="{_DIAGRAMS}" {nsdecls("r")}'
    graphics = (
        f'<c:chart {names} r:id="{shown["charts/chart1"]}"/>',
        f'<dgm:relIds {names} r:dm="{shown["diagrams/data1"]}"/>',
        f'<c:chart {names} r:id="{shown["charts/chart1"]}"/>',
        f'<c:chart {names} r:id="rIdLost"/>',
    )
    for number, graphic in enumerate(graphics):
        paragraph = document.add_paragraph(f"Figure {number}:")
        paragraph.add_run()._element.append(parse_word_xml(_drawing(graphic, about)))
    document.add_paragraph("After.")
    return saved(document)


def _drawing(graphic, about):
    names = f'xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing" xmlns:a="{_DRAWING}"'
    word = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    return (
        f'<w:drawing xmlns:w="{word}"><wp:inline {names}><wp:docPr id="1" name="x" {about}/>'
        f"<a:graphic><a:graphicData>{graphic}</a:graphicData></a:graphic></wp:inline></w:drawing>"
    )


def test_pptx_chart_becomes_table():
    assert text_of(charted()) == "\n".join(CHART)


as_it_is = pytest.mark.parametrize("as_it_is", [lambda data: data, strict], ids=["usual", "strict"])


@as_it_is
def test_pptx_diagram_text_is_read(as_it_is):
    assert text_of(as_it_is(diagrammed())) == "\n".join(["Steps\n", *DIAGRAM])


@as_it_is
def test_docx_chart_and_diagram_texts_keep_position(as_it_is):
    chart, diagram = "\n".join(CHART), "\n".join(DIAGRAM)
    assert text_of(as_it_is(word_drawn())) == (
        f"Figure 0:\n{chart}\n\n\nFigure 1:\n{diagram}\n\n\nFigure 2:\n{chart}\n\n\nFigure 3:\n\nAfter."
    )


@pytest.mark.parametrize("hidden", ["1", "true"])
def test_docx_hidden_drawings_are_not_read(hidden):
    said = "Figure 0:\n\nFigure 1:\n\nFigure 2:\n\nFigure 3:\n\nAfter."
    assert text_of(word_drawn(f'hidden="{hidden}"')) == said


def test_repeated_chart_is_parsed_once(monkeypatch):
    read = []
    usual = zip_container.parse_xml
    monkeypatch.setattr(zip_container, "parse_xml", lambda content: (read.append(content), usual(content))[1])
    word.parse(word_drawn(), Limits())
    assert len([content for content in read if b"chartSpace" in content]) == 1
