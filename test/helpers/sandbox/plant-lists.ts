/*
 * Plant lists as people keep them: a header, and rows of a number, the name of a plant and where it
 * grows, each in a language and in the encodings that its programs have written.
 */
export interface ListLanguage {
  language: string
  encodings: readonly string[]
  header: string
  plants: readonly string[]
  places: readonly string[]
}

/**
 * @param encodings with a space between them
 * @param plants with a comma and a space between them, as `places`
 */
function buildLanguage(
  language: string,
  encodings: string,
  header: string,
  plants: string,
  places: string,
): ListLanguage {
  return {
    language,
    encodings: encodings.split(' '),
    header,
    plants: plants.split(', '),
    places: places.split(', '),
  }
}

export const listLanguages: readonly ListLanguage[] = [
  buildLanguage(
    'German',
    'windows-1252 macintosh cp850',
    'Nr;Name;Standort',
    'Gänseblümchen, Löwenzahn, Schlüsselblume, Frauenmantel, Königskerze, Rotbuche, Süßkirsche, Mädchenauge, Günsel, Bärlauch, Storchschnabel, Fünffingerkraut, Türkischer Mohn, Glockenblume, Weißdorn',
    'Südbeet, Gewächshaus, Mauerfuß, Teich, Böschung, Steingarten, Hinterhof',
  ),
  buildLanguage(
    'French',
    'windows-1252 macintosh',
    'Numéro;Nom;Emplacement',
    'Églantier, Érable, Chêne vert, Pâquerette, Fougère mâle, Bruyère, Hêtre, Lavande, Muguet, Rosier grimpant, Œillet, Tilleul, Pensée, Genêt à balais, Clématite',
    'Allée, Serre, Forêt, Étang, Près de la clôture, Jardin d’été, Verger',
  ),
  buildLanguage(
    'Spanish',
    'windows-1252 cp850',
    'Número;Nombre;Ubicación',
    'Álamo, Azucena, Jazmín, Olivo, Clavel, Ciprés, Limón, Piñón, Romero, Árbol del paraíso, Castaño, Níspero, Acónito, Peonía, Girasol',
    'Jardín, Patio, Invernadero, Rincón sur, Montaña, Camino, Estanque pequeño',
  ),
  buildLanguage(
    'Portuguese',
    'windows-1252',
    'Número;Nome;Localização',
    'Açucena, Hortênsia, Limão, Maracujá, Orquídea, Sobreiro, Alecrim, Videira, Camélia, Oliveira, Manjericão, Ipê-amarelo, Jasmim, Pinhão, Avelã',
    'Varanda, Estufa, Jardim da frente, Praça, Quintal, Caminho da fonte, Pátio são José',
  ),
  buildLanguage(
    'Swedish',
    'windows-1252',
    'Nr;Namn;Växtplats',
    'Blåsippa, Förgätmigej, Gullviva, Hägg, Järnek, Liljekonvalj, Rönn, Smörblomma, Tusensköna, Vitsippa, Åkerbär, Ängsklocka, Körsbär, Björk, Mörkröd pion',
    'Växthus, Rabatt, Södra sidan, Äng, Trädgård, Gården, Sjön',
  ),
  buildLanguage(
    'Polish',
    'windows-1250 iso-8859-2 cp852',
    'Nr;Nazwa;Miejsce',
    'Śliwa, Jabłoń, Grusza, Róża, Wiśnia, Dąb, Świerk, Lawenda wąskolistna, Krwiściąg, Wrzos, Pięciornik, Zawilec, Żurawka, Leszczyna, Tawuła',
    'Szklarnia, Ogród, Grządka południowa, Staw, Przy płocie, Łąka, Wzgórze',
  ),
  buildLanguage(
    'Czech',
    'windows-1250 iso-8859-2',
    'Číslo;Název;Místo',
    'Růže, Třešeň, Švestka, Kopretina, Řebříček, Dub, Buk, Jeřáb, Šeřík, Pivoňka, Měsíček, Žluťucha, Kosatec, Hvězdnice, Mateřídouška',
    'Zahrada, Skleník, Jižní záhon, Louka, Rybník, U plotu, Skalka',
  ),
  buildLanguage(
    'Hungarian',
    'windows-1250 cp852',
    'Szám;Név;Hely',
    'Gyöngyvirág, Tölgy, Bükk, Körtefa, Meggy, Őszirózsa, Fűzfa, Szegfű, Árvácska, Hóvirág, Sárgabarack, Cserszömörce, Tűztövis, Levendula, Pünkösdi rózsa',
    'Kert, Üvegház, Déli ágyás, Tó, Kerítés mellett, Erdő, Udvar',
  ),
  buildLanguage(
    'Romanian',
    'windows-1250',
    'Număr;Nume;Loc',
    'Trandafir, Măr, Păr, Cireş, Brânduşă, Lăcrămioară, Muşeţel, Stânjenel, Salcâm, Frasin, Gutui, Ghiocel, Viţă de vie, Măceş, Busuioc',
    'Grădină, Seră, Livadă, Lângă gard, Pădure, Curte, Iaz',
  ),
  buildLanguage(
    'Croatian',
    'windows-1250',
    'Broj;Naziv;Mjesto',
    'Ruža, Trešnja, Šljiva, Kruška, Đurđica, Hrast, Bukva, Ljubičica, Božur, Visibaba, Čempres, Lavanda, Maslačak, Šipak, Žutika',
    'Vrt, Staklenik, Južna gredica, Livada, Uz ogradu, Šuma, Dvorište',
  ),
  buildLanguage(
    'Russian',
    'windows-1251 koi8-r cp866 iso-8859-5 x-mac-cyrillic',
    'Номер;Название;Место',
    'Ромашка, Берёза, Сирень, Ландыш, Пион, Клён, Шиповник, Яблоня, Рябина, Колокольчик, Смородина чёрная, Ель, Вишня, Незабудка, Подсолнечник',
    'Теплица, Южная грядка, Пруд, У забора, Сад, Горка, Двор',
  ),
  buildLanguage(
    'Ukrainian',
    'windows-1251 koi8-u',
    'Номер;Назва;Місце',
    'Яблуня, Вишня, Груша, Троянда, Чорнобривці, Півонія, Бузок, Конвалія, Соняшник, Калина, Ялівець, Їжачник, Дуб, Аґрус, Барвінок',
    "Теплиця, Південна грядка, Біля паркану, Сад, Ставок, Подвір'я, Гірка",
  ),
  buildLanguage(
    'Bulgarian',
    'windows-1251',
    'Номер;Име;Място',
    'Роза, Череша, Ябълка, Круша, Божур, Теменуга, Лавандула, Дъб, Бук, Глухарче, Минзухар, Кокиче, Люляк, Слънчоглед, Мащерка',
    'Оранжерия, Южна леха, Езеро, До оградата, Градина, Двор, Поляна',
  ),
  buildLanguage(
    'Greek',
    'windows-1253 iso-8859-7 cp737',
    'Αριθμός;Όνομα;Θέση',
    'Ελιά, Λεμονιά, Τριανταφυλλιά, Βασιλικός, Δάφνη, Θυμάρι, Κυπαρίσσι, Λεβάντα, Μυρτιά, Πεύκο, Ρίγανη, Συκιά, Γεράνι, Αμυγδαλιά, Γιασεμί',
    'Κήπος, Θερμοκήπιο, Αυλή, Μπαλκόνι, Δίπλα στον φράχτη, Λίμνη, Βράχος',
  ),
  buildLanguage(
    'Turkish',
    'windows-1254 cp857',
    'No;İsim;Yer',
    'Gül, İğde ağacı, Çınar, Ihlamur, Şeftali, Ayçiçeği, Kızılcık, Zeytin, İncir ağacı, Söğüt, Papatya, Kardelen, Böğürtlen, Sümbül, Fındık',
    'Bahçe, Sera, Güney tarhı, Gölet, Çit yanı, Orman, Avlu',
  ),
  buildLanguage(
    'Hebrew',
    'windows-1255',
    'מספר;שם;מקום',
    'זית, רימון, תאנה, ורד, רקפת, כלנית, אלון, דקל, לבנדר, יסמין, נרקיס, שקד, תפוח, גפן, רוזמרין',
    'גינה, חממה, ערוגה דרומית, בריכה, ליד הגדר, חצר, יער',
  ),
  buildLanguage(
    'Arabic',
    'windows-1256',
    'رقم;الاسم;المكان',
    'وردة, ياسمين, زيتون, نخلة, ليمون, رمان, تين, ريحان, نعناع, زعتر, سرو, لوز, تفاح, عنب, خزامى',
    'الحديقة, البيت الزجاجي, الحوض الجنوبي, البركة, بجانب السور, الفناء, الغابة',
  ),
  buildLanguage(
    'Lithuanian',
    'windows-1257',
    'Nr;Pavadinimas;Vieta',
    'Rožė, Ąžuolas, Beržas, Obelis, Kriaušė, Vyšnia, Žibutė, Pakalnutė, Tulpė, Šermukšnis, Lėlija, Bijūnas, Našlaitė, Gluosnis, Mėta',
    'Šiltnamis, Pietinė lysvė, Sodas, Tvenkinys, Prie tvoros, Kiemas, Miškas',
  ),
  buildLanguage(
    'Latvian',
    'windows-1257',
    'Nr;Nosaukums;Vieta',
    'Roze, Ozols, Bērzs, Ābele, Bumbiere, Ķirsis, Vijolīte, Maijpuķīte, Tulpe, Pīlādzis, Lilija, Peonija, Atraitnīte, Vītols, Piparmētra',
    'Siltumnīca, Dienvidu dobe, Dārzs, Dīķis, Pie žoga, Pagalms, Mežs',
  ),
  buildLanguage(
    'Vietnamese',
    'windows-1258',
    'Số;Tên;Vị trí',
    'Hoa hồng, Hoa sen, Cây tre, Hoa mai vàng, Hoa đào, Cây bưởi, Húng quế, Sả chanh, Rau muống, Cây xoài, Hoa lan, Dừa nước, Cây mít, Nhãn lồng, Hoa cúc trắng',
    'Vườn trước, Nhà kính, Bờ ao, Sân sau, Cạnh hàng rào, Luống phía nam, Ban công',
  ),
  buildLanguage(
    'Thai',
    'windows-874',
    'ลำดับ;ชื่อ;สถานที่',
    'กุหลาบ, มะลิ, กล้วยไม้, มะม่วง, กล้วย, ตะไคร้, โหระพา, บัวหลวง, ชบา, เฟื่องฟ้า, มะพร้าว, ลั่นทม, พุทธรักษา, ดาวเรือง, ราชพฤกษ์',
    'สวนหน้าบ้าน, เรือนกระจก, ริมสระน้ำ, แปลงทิศใต้, ข้างรั้ว, ลานหลัง, ระเบียง',
  ),
  buildLanguage(
    'Japanese',
    'shift_jis euc-jp',
    '番号;名前;場所',
    '桜, 梅, 紫陽花, 向日葵, 朝顔, 椿, 菊, スミレ, タンポポ, もみじ, 竹, 松, ユリ, ラベンダー, 金木犀',
    '庭, 温室, 南の花壇, 池のほとり, 垣根, ベランダ, 裏山',
  ),
  buildLanguage(
    'Simplified Chinese',
    'gb18030',
    '编号;名称;位置',
    '玫瑰, 牡丹, 菊花, 荷花, 桂花, 竹子, 松树, 兰花, 梅花, 茶花, 向日葵, 银杏, 薄荷, 杜鹃花, 紫藤',
    '花园, 温室, 南边花坛, 池塘边, 围墙, 阳台, 后院',
  ),
  buildLanguage(
    'Traditional Chinese',
    'big5',
    '編號;名稱;位置',
    '玫瑰, 牡丹, 菊花, 荷花, 桂花, 竹子, 松樹, 蘭花, 梅花, 茶花, 向日葵, 銀杏, 薄荷, 杜鵑花, 紫藤',
    '花園, 溫室, 南邊花壇, 池塘邊, 圍牆, 陽台, 後院',
  ),
  buildLanguage(
    'Korean',
    'euc-kr',
    '번호;이름;위치',
    '장미, 무궁화, 진달래, 개나리, 벚나무, 소나무, 은행나무, 해바라기, 국화, 연꽃, 단풍나무, 대나무, 수국, 라벤더, 민들레',
    '정원, 온실, 남쪽 화단, 연못가, 울타리 옆, 마당, 뒷산',
  ),
]

interface ListShape {
  rows: number
  /** The header is English, and only every third row has the name of a plant in the language. */
  isSparse?: boolean
}

export function writeList(
  { header, plants, places }: ListLanguage,
  { rows, isSparse = false }: ListShape,
): string {
  const lines = Array.from({ length: rows }, (_, index) => {
    const plant = plants[index % plants.length]
    const place = places[(index + Math.floor(index / plants.length)) % places.length]
    if (!isSparse) return `${index + 1};${plant};${place}`
    const name = index % 3 === 0 ? plant : latinNames[index % latinNames.length]
    return `${index + 1};${name};Bed ${index}`
  })
  return [isSparse ? 'id;name;tag' : header, ...lines, ''].join('\r\n')
}

const latinNames = [
  'Rosa canina',
  'Quercus robur',
  'Salvia officinalis',
  'Acer campestre',
  'Iris germanica',
  'Lavandula angustifolia',
  'Prunus avium',
  'Digitalis purpurea',
]
