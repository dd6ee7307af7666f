"""Makes workbooks with openpyxl and XlsxWriter, changes the XML of two in three, and prints for each
what openpyxl reads from it: rows of texts, with N before a number, or an error.

Arguments: a folder, how many, a seed, and the program of LibreOffice if it shall save them first."""
import datetime, json, os, random, re, subprocess, sys, warnings, zipfile
import openpyxl, xlsxwriter
from openpyxl.utils.datetime import CALENDAR_MAC_1904

warnings.simplefilter('ignore')
folder, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
R = random.Random(seed)
TEXTS = ['Fern', '  a ', 'x&y <z>', '_x0041_', '#N/A', 'é\u3000', '🌵', 'a\nb', '=no', '', '1e3',
         'Moss "wet"', 'a]]>b', '\ttab', 'TRUE', '007']
NUMBERS = [0, 1, -5, 12345678901234, 2**52, 7.0, 0.1, -1.5e-7, 3.25, 1e15 / 3]
DATES = [datetime.datetime(2026, 3, 1), datetime.datetime(1999, 12, 31, 23, 59, 58),
         datetime.datetime(1900, 1, 5), datetime.time(14, 30), datetime.date(2024, 2, 29),
         datetime.timedelta(hours=36, seconds=7), datetime.datetime(2026, 3, 1, 0, 0, 0, 250000)]
# Numbers at the limits of both calendars, and their formats: 60 is the false leap day of 1900.
DAYS = [0, 0.25, 0.75, 1, 1.5, 58, 59, 59.5, 60, 60.5, 61, 61.75, 365, 366, 1462, 46082,
        46082.604166666664, 46082.000011574074, 46082.00000001157, 0.9999999999, 59.9999999999,
        2957003, 2957004, 2958465, 2958465.5, 2958466, -1, -0.5]
FORMATS = ['yyyy-mm-dd', 'yyyy\\-mm\\-dd;@', 'd/m/yy h:mm', 'h:mm', 'h:mm AM/PM', 'mm:ss', 'mm:ss.0',
           '[h]:mm:ss', '[mm]:ss', '[ss]', '[$-409]mmmm d, yyyy', 'mmm', '[Red]dd', 'General', '0.00',
           '0.0E+00', '0" d"', '0\\ \\d', '#,##0.00_);[Red](#,##0.00)', '"day "0', '@', '0%',
           '# ?/?', '[$€-407] 0', 'm/d/yy h:mm', '[h]:mm', 'h:mm:ss', 'd-mmm', 'mmm-yy', 'dddd']
SPACE = ('\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a'
         '\u2028\u2029\u202f\u205f\u3000\ufeff')


def value():
    kind = R.choice(['text', 'text', 'number', 'date', 'formatted', 'boolean', 'none'])
    if kind == 'boolean': return R.random() < 0.5
    if kind == 'none': return None
    if kind == 'formatted': return R.choice(DAYS), R.choice(FORMATS)
    return R.choice({'text': TEXTS, 'number': NUMBERS, 'date': DATES}[kind])


def rows():
    table = [[i] + [value() for _ in range(R.randrange(1, 5))] for i in range(R.randrange(2, 30))]
    return [['id', 'name', 'tag', 'a', 'b']] + table


def make_by_openpyxl(path):
    workbook = openpyxl.Workbook()
    if R.random() < 0.4: workbook.epoch = CALENDAR_MAC_1904
    workbook.iso_dates = R.random() < 0.2
    for y, row in enumerate(rows()):
        for x, v in enumerate(row):
            cell = workbook.active.cell(y + 1, x + 1)
            if isinstance(v, tuple): cell.value, cell.number_format = v
            else: cell.value = 'f' if v == '=no' else v
    workbook.save(path)


def make_by_xlsxwriter(path):
    options = {'default_date_format': R.choice(['yyyy-mm-dd', 'd mmm yy hh:mm']),
               'strings_to_formulas': False, 'constant_memory': R.random() < 0.3,
               'date_1904': R.random() < 0.4}
    workbook = xlsxwriter.Workbook(path, options)
    formats = {code: workbook.add_format({'num_format': code}) for code in FORMATS}
    bold = workbook.add_format({'bold': True})
    sheet = workbook.add_worksheet()
    for y, row in enumerate(rows()):
        for x, v in enumerate(row):
            if isinstance(v, tuple): sheet.write_number(y, x, v[0], formats[v[1]])
            # A 1904 calendar has no day before it.
            elif options['date_1904'] and v == DATES[2]: sheet.write(y, x, 'early')
            elif v == 'Fern': sheet.write_rich_string(y, x, 'Fe', bold, ' r', 'n  ', bold, '_x0041_')
            elif v is not None: sheet.write(y, x, v)
    if R.random() < 0.3: sheet.merge_range(50, 0, 52, 3, R.choice(['merged', 5]))
    if R.random() < 0.3: sheet.write_url(55, 1, 'https://example.com/?a=1&b=2', string='link')
    if R.random() < 0.3: sheet.write_array_formula(56, 1, 57, 2, '{=A1:B2}', None, 4)
    if R.random() < 0.3: sheet.write_formula(60, 2, '1/0', None, '#DIV/0!')
    if R.random() < 0.3: sheet.write_comment(1, 1, 'a comment')
    if R.random() < 0.3: sheet.write_formula(40, 1, 'A1+1', None, R.choice([3, 'x', True]))
    workbook.close()


def save_by_libreoffice(program, paths):
    saved = os.path.join(folder, 'saved')
    profile = '-env:UserInstallation=file://' + os.path.join(folder, 'profile')
    command = [program, '--headless', profile, '--convert-to', 'xlsx', '--outdir', saved]
    # Of more than 247 files, it leaves the rest out.
    for start in range(0, len(paths), 100):
        subprocess.run(command + paths[start:start + 100], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
    for path in paths: os.replace(os.path.join(saved, os.path.basename(path)), path)


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


def show(cell, is_1904):
    v = cell.value
    if v is None: return None
    if isinstance(v, bool): return str(v).upper()
    # openpyxl takes the first day of 1904 for no day.
    if is_1904 and isinstance(v, datetime.time) and re.search('[dy]|mmm', cell.number_format):
        v = datetime.datetime.combine(datetime.date(1904, 1, 1), v)
    if isinstance(v, datetime.timedelta): return show_duration(v)
    if isinstance(v, (datetime.datetime, datetime.date, datetime.time)):
        return re.sub(r'T00:00:00$|(?<=\.\d{3})000$', '', v.isoformat())
    if isinstance(v, (int, float)): return 'N%r' % float(v)
    return v.strip(SPACE) or None


def show_duration(v):
    seconds, milliseconds = divmod(round(v / datetime.timedelta(milliseconds=1)), 1000)
    clock = '%02d:%02d:%02d' % (seconds // 3600, seconds // 60 % 60, seconds % 60)
    return clock + ('.%03d' % milliseconds if milliseconds else '')


paths = [os.path.join(folder, '%05d.xlsx' % index) for index in range(count)]
for path in paths: R.choice([make_by_openpyxl, make_by_xlsxwriter])(path)
if len(sys.argv) > 4: save_by_libreoffice(sys.argv[4], paths)
for index, path in enumerate(paths):
    if index % 3 != 0: mutate(path)
    try:
        workbook = openpyxl.load_workbook(path, data_only=True)
        is_1904 = workbook.epoch == CALENDAR_MAC_1904
        rows_read = workbook.worksheets[0].iter_rows()
        result = {'rows': [[show(cell, is_1904) for cell in row] for row in rows_read]}
    except Exception as error:
        result = {'error': repr(error)[:200]}
    print(json.dumps(result))
