import { paragraph, type Row, rowsOf, section } from './layout.js'

/** The page `plants help formats`. */
export async function formats(width: number): Promise<string> {
  return [
    paragraph('A plant has an id, a name and perhaps a tag. These are two plants, of which the second has no tag.', width),
    section('As flags of plants create', ['--id 1 --name Fern --tag shade', '--id 9007199254740993 --name Moss']),
    section('As JSON, with plants create --file', ['{"id":1,"name":"Fern","tag":"shade"}', '{"id":9007199254740993,"name":"Moss"}']),
    section('As ndjson, for many', ['{"id":1,"name":"Fern","tag":"shade"}', '{"id":9007199254740993,"name":"Moss"}']),
    section('As json', ['[', '{"id":1,"name":"Fern","tag":"shade"},', '{"id":9007199254740993,"name":"Moss"}', ']']),
    section('As csv', ['id,name,tag', '1,Fern,shade', '9007199254740993,Moss,']),
    section('As tsv', ['id\tname\ttag', '1\tFern\tshade', '9007199254740993\tMoss\t']),
    `What they hold:\n${rowsOf(values, width)}`,
    `Where it goes:\n${rowsOf(streams, width)}`,
    section('An error as JSON', ['{"error":409,"message":"Another plant has the id 1","hint":"Look at it with: plants get 1"}']),
    `In flags and settings:\n${rowsOf(quantities, width)}`,
    'See also: plants help exit-codes\n',
  ].join('\n')
}

const values: Row[] = [
  {
    term: 'id',
    meaning:
      'an integer from -9223372036854775808 to 9223372036854775807 in the grammar of JSON: 1.0 and 1e3 are integers; "1", 1.5, +1 and 007 are not. It is never rounded here; programs that take numbers for floating point round those above 9007199254740992',
  },
  { term: 'name, tag', meaning: 'any Unicode text, also an empty one, without U+0000' },
  {
    term: 'no tag',
    meaning: 'in JSON there is no field, and null is refused; in csv and tsv an empty cell is no tag, and "" the empty text',
  },
  { term: 'other fields', meaning: 'are not stored; a warning names them' },
]

const streams: Row[] = [
  {
    term: 'stdout',
    meaning: 'answers alone: text on a terminal, else JSON; --output json or text says which. Several are one JSON object a line',
  },
  {
    term: 'stderr',
    meaning: 'errors, warnings, questions, progress and logs. Errors and warnings are a line of JSON each when JSON was asked for',
  },
]

const quantities: Row[] = [
  { term: 'a duration', meaning: '500ms, 30s, 2m, 1h or 90d; a number alone is seconds, except for --expires, which wants the unit' },
  { term: 'a size', meaning: '16KiB, 1MiB or 1GiB; a number alone is bytes' },
]
