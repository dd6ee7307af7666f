"""Makes workbooks with openpyxl and XlsxWriter, changes the XML of two in three, and prints for each
what openpyxl reads from it: rows of texts, with N before a number, or an error.

Arguments: a folder, how many, and a seed."""
import datetime, json, os, random, re, sys, warnings, zipfile
import openpyxl, xlsxwriter

warnings.simplefilter('ignore')
folder, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
R = random.Random(seed)
TEXTS = ['Fern', '  a ', 'x&y <z>', '_x0041_', '#N/A', 'é\u3000', '🌵', 'a\nb', '=no', '', '1e3',
         'Moss "wet"', 'a]]>b', '\ttab', 'TRUE', '007']
NUMBERS = [0, 1, -5, 12345678901234, 2**52, 7.0, 0.1, -1.5e-7, 3.25, 1e15 / 3]
DATES = [datetime.datetime(2026, 3, 1), datetime.datetime(1999, 12, 31, 23, 59, 58),
         datetime.datetime(1900, 1, 5), datetime.time(14, 30), datetime.date(2024, 2, 29)]
SPACE = ('\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a'
         '\u2028\u2029\u202f\u205f\u3000\ufeff')


def value():
    kind = R.choice(['text', 'text', 'number', 'date', 'boolean', 'none'])
    if kind == 'boolean': return R.random() < 0.5
    if kind == 'none': return None
    return R.choice({'text': TEXTS, 'number': NUMBERS, 'date': DATES}[kind])


def rows():
    table = [[i] + [value() for _ in range(R.randrange(1, 5))] for i in range(R.randrange(2, 30))]
    return [['id', 'name', 'tag', 'a', 'b']] + table


def make_by_openpyxl(path):
    workbook = openpyxl.Workbook()
    for row in rows(): workbook.active.append(['f' if v == '=no' else v for v in row])
    workbook.save(path)


def make_by_xlsxwriter(path):
    options = {'default_date_format': R.choice(['yyyy-mm-dd', 'd mmm yy hh:mm']),
               'strings_to_formulas': False, 'constant_memory': R.random() < 0.3}
    workbook = xlsxwriter.Workbook(path, options)
    sheet = workbook.add_worksheet()
    for y, row in enumerate(rows()):
        for x, v in enumerate(row):
            if v is not None: sheet.write(y, x, v)
    if R.random() < 0.3: sheet.write_formula(40, 1, 'A1+1', None, R.choice([3, 'x', True]))
    workbook.close()


def change(xml):
    tags = [m.span() for m in re.finditer(r'<[^>]+>', xml)]
    a, b = R.choice(tags)
    c, d = R.choice(tags)
    at = R.randrange(len(xml))
    text = re.search(r'>([^<]+)<', xml[a:])
    values = ['', '0', '-1', '99', 'x', '&amp;', '1.5', '\ufffe', ' 3 ']
    attributes = ['', ' t="str"', ' t="n"', ' t="s"', ' s="1"', ' s="99"', ' r="B2"']
    inserts = ['<!-- c -->', ' ', '<x/>', '<![CDATA[1]]>', '<extLst><v>1</v></extLst>']
    return R.choice([
        lambda: xml[:a] + xml[b:],
        lambda: xml[:b] + xml[a:b] + xml[b:],
        lambda: xml[:a] + xml[c:d] + xml[b:],
        lambda: xml[:a] + xml[a:].replace(text[1], R.choice(values), 1) if text else xml,
        lambda: xml[:a] + re.sub(r' [tsr]="[^"]*"', R.choice(attributes), xml[a:b]) + xml[b:],
        lambda: xml[:at] + R.choice('<>&"/ a1\0') + xml[at + 1:],
        lambda: xml[:at] + xml[at + R.randrange(1, 40):],
        lambda: xml[:a] + R.choice(inserts) + xml[a:],
    ])()


def mutate(path):
    with zipfile.ZipFile(path) as archive:
        parts = {info.filename: archive.read(info) for info in archive.infolist()}
    name = R.choice([n for n in parts if re.search(r'sheet1|sharedStr|styles|workbook\.xml', n)])
    xml = parts[name].decode()
    for _ in range(R.randrange(1, 4)): xml = change(xml)
    parts[name] = xml.encode('utf8')
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as archive:
        for part, content in parts.items(): archive.writestr(part, content)


def show(cell):
    v = cell.value
    if v is None: return None
    if isinstance(v, bool): return str(v).upper()
    if isinstance(v, (datetime.datetime, datetime.date, datetime.time)):
        return v.isoformat().replace('T00:00:00', '')
    if isinstance(v, (int, float)): return 'N%r' % float(v)
    return v.strip(SPACE) or None


for index in range(count):
    path = os.path.join(folder, '%05d.xlsx' % index)
    R.choice([make_by_openpyxl, make_by_xlsxwriter])(path)
    if index % 3 != 0: mutate(path)
    try:
        sheet = openpyxl.load_workbook(path, data_only=True).worksheets[0]
        result = {'rows': [[show(cell) for cell in row] for row in sheet.iter_rows()]}
    except Exception as error:
        result = {'error': repr(error)[:200]}
    print(json.dumps(result))
