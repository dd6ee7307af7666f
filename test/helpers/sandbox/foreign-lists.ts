import iconv from 'iconv-lite'

/** A plant list as somebody keeps it, in the language and the encoding of an old spreadsheet. */
export interface ForeignList {
  language: string
  encoding: string
  delimiter: string
  /** The names of the columns that are the id, the name and the tag. */
  columns: [id: string, name: string, tag: string]
  rows: [id: number, name: string, tag: string][]
}

/**
 * Converts a string to the characters of Windows-1258. It has the letters of Vietnamese with their
 * marks, but each tone is a character of its own.
 */
function toWindows1258(text: string): string {
  return text
    .normalize('NFD')
    .replaceAll(/[AEOaeo]\u0302|[Aa]\u0306|[OUou]\u031b/g, (letter) => letter.normalize('NFC'))
}

/** @param lines the header and the rows, with cells between vertical bars */
function buildList(
  language: string,
  encoding: string,
  delimiter: string,
  lines: string[],
): ForeignList {
  const [header, ...rows] = lines.map(splitCells)
  return {
    language,
    encoding,
    delimiter,
    columns: header ?? ['', '', ''],
    rows: rows.map(([id, name, tag]) => [Number(id), name, tag]),
  }
}

function splitCells(line: string): [id: string, name: string, tag: string] {
  const [id = '', name = '', tag = ''] = line.split('|')
  return [id, name, tag]
}

export function encodeList({ encoding, delimiter, columns, rows }: ForeignList): Buffer {
  const lines = [columns, ...rows].map((cells) => `${cells.join(delimiter)}\r\n`)
  const hasMark = encoding === 'utf8' || encoding === 'utf-16le'
  return iconv.encode(lines.join(''), encoding, { addBOM: hasMark })
}

export const foreignLists: readonly ForeignList[] = [
  buildList('German', 'windows-1252', ';', [
    'Nr.|Botanischer Name|Standort',
    '7|Rosa × alba „Maxima“|Südbeet',
    '8|Süßkirsche, früh|Obstwiese',
    '12|Gänseblümchen|Böschung',
    '31|Kräutermischung für Töpfe|Gewächshaus',
  ]),
  buildList('Japanese', 'shift_jis', ',', [
    '番号|名前|場所',
    '1|薔薇①|北の庭',
    '2|髙砂百合|温室',
    '3|染井吉野|正門の前',
    '4|向日葵|南の畑',
  ]),
  buildList('Korean', 'cp949', ',', [
    '번호|이름|위치',
    '1|장미 뷁|북쪽 정원',
    '2|무궁화|온실',
    '3|진달래 똠|남쪽 언덕',
    '4|소나무|정문 앞',
  ]),
  buildList('Simplified Chinese', 'gb18030', ',', [
    '编号|名称|位置',
    '1|玫瑰|北园',
    '2|㐀牡丹|温室',
    '3|菊花|南坡',
    '4|银杏树|正门前',
  ]),
  buildList('Russian', 'windows-1251', ';', [
    '№|Название|Место',
    '1|Роза «Глория»|Южная клумба',
    '2|Подорожник большой|Луг',
    '3|Сирень обыкновенная|У ворот',
    '4|Ель голубая|Аллея',
  ]),
  buildList('Turkish', 'windows-1254', ';', [
    'Sıra No|Bitki adı|Yer',
    '1|Gül ağacı|Güney bahçesi',
    '2|Şakayık|İç bahçe',
    '3|Ihlamur|Göl kıyısı',
    '4|Çınar ağacı|Kapı önü',
  ]),
  buildList('Greek', 'windows-1253', ';', [
    'Αριθμός|Όνομα|Θέση',
    '1|Τριανταφυλλιά|Νότιος κήπος',
    '2|Ελιά|Λόφος',
    '3|Δεντρολίβανο|Θερμοκήπιο',
    '4|Κυπαρίσσι|Είσοδος',
  ]),
  buildList('Arabic', 'windows-1256', ',', [
    'رقم|الاسم|المكان',
    '1|وردة حمراء|الحديقة الجنوبية',
    '2|زيتون|التل',
    '3|نخلة التمر|أمام الباب',
    '4|ياسمين|البيت الزجاجي',
  ]),
  buildList('Thai', 'windows-874', ',', [
    'ลำดับ|ชื่อ|ที่ตั้ง',
    '1|กุหลาบแดง|สวนเหนือ',
    '2|มะลิซ้อน|เรือนกระจก',
    '3|ต้นจามจุรี|หน้าประตู',
    '4|บัวหลวง|สระน้ำ',
  ]),
  buildList('Hebrew', 'windows-1255', ',', [
    'מספר|שם הצמח|מקום',
    '1|ורד אדום|הגן הדרומי',
    '2|עץ זית|הגבעה',
    '3|יסמין|החממה',
    '4|ברוש|ליד השער',
  ]),
  buildList('Hindi', 'utf8', ',', [
    'क्रमांक|नाम|स्थान',
    '1|गुलाब|दक्षिण उद्यान',
    '2|तुलसी|आँगन',
    '3|नीम|द्वार के पास',
  ]),
  buildList('French', 'utf-16le', '\t', [
    'N°|Espèce|Emplacement',
    '1|Rosier « Pierre »|Côté sud',
    '2|Chêne vert|Forêt',
    '3|Épicéa|Allée',
  ]),
  buildList('Polish', 'windows-1250', ';', [
    'Lp.|Nazwa gatunkowa|Miejsce',
    '1|Róża dzika|Ogród południowy',
    '2|Brzoza żółta|Łąka',
    '3|Świerk kłujący|Przy bramie',
    '4|Jabłoń ozdobna|Źródło',
  ]),
  buildList('Czech', 'windows-1250', ';', [
    'Číslo|Český název|Místo',
    '1|Růže šípková|Jižní záhon',
    '2|Třešeň ptačí|Ovocný sad',
    '3|Jeřáb obecný|U brány',
    '4|Hloh jednosemenný|Živý plot',
  ]),
  buildList('Hungarian', 'windows-1250', ';', [
    'Sorszám|Név|Hely',
    '1|Vadrózsa|Déli ágyás',
    '2|Őszi fűszernövény|Üvegház',
    '3|Bükkfa|Erdőszél',
    '4|Gyűszűvirág|Kőkert',
  ]),
  buildList(
    'Vietnamese',
    'windows-1258',
    ',',
    [
      'STT|Tên cây|Vị trí',
      '1|Hoa hồng đỏ|Vườn phía nam',
      '2|Cây bưởi|Trước cổng',
      '3|Hoa sen trắng|Ao nước',
      '4|Cây phượng vĩ|Sân trường',
    ].map(toWindows1258),
  ),
  buildList('Ukrainian', 'koi8-u', ';', [
    'Номер|Назва|Місце',
    '1|Троянда їжакова|Південна клумба',
    '2|Калина звичайна|Біля воріт',
    '3|Ялина європейська|Алея',
    '4|Ґрунтова м’ята|Грядка'.replace('’', "'"),
  ]),
  buildList('Traditional Chinese', 'big5', ',', [
    '編號|名稱|位置',
    '1|玫瑰花|北園',
    '2|牡丹|溫室',
    '3|菊花|南坡',
    '4|銀杏樹|正門前',
  ]),
  buildList('Lithuanian', 'windows-1257', ';', [
    'Nr.|Pavadinimas|Vieta',
    '1|Erškėtis|Pietų gėlynas',
    '2|Ąžuolas|Pieva',
    '3|Žalioji eglė|Prie vartų',
    '4|Šermukšnis|Šiltnamis',
  ]),
  buildList('Romanian', 'iso-8859-2', ';', [
    'Nr.|Denumire|Loc',
    '1|Trandafir sălbatic|Grădina de sud',
    '2|Brânduşă de toamnă|Pajişte',
    '3|Stejar pufos|Lângă poartă',
    '4|Măceş înalt|Seră caldă',
  ]),
  buildList('Portuguese', 'cp850', ';', [
    'Número|Espécie|Local',
    '1|Roseira brava|Jardim à beira do rio',
    '2|Limoeiro anão|Pátio',
    '3|Açafrão da índia|Ervanária',
    '4|Pinheiro manso|Portão',
  ]),
  buildList('Spanish', 'macintosh', ';', [
    'Núm.|Nombre común|Ubicación',
    '1|Rosal silvestre|Jardín sur',
    '2|Encina de montaña|Ladera',
    '3|Limón|Patio pequeño',
    '4|Árbol del paraíso|Balcón',
  ]),
]
