const changeExistingHint = 'To change plants that exist: plants import FILE --if-exists update'
const columnsHint = 'To name the columns: --map id=COLUMN,name=COLUMN,tag=COLUMN'
const filterHint = 'To select plants: plants list --search TEXT, or plants list --tag TEXT'
const formatHint = 'The format of an input is detected, or chosen with: --format csv'
const importHint = 'To read a list or a spreadsheet: plants import FILE'
const jsonHint = `Pipe JSON to stdin, as in: echo '{"id":3,"name":"Mint"}' | plants create`
const searchHint = 'To search: plants list --search TEXT'
const storeHint = 'To choose a store: --store FILE'
const syncHint = 'If a list has all plants, make the store equal to it: plants import FILE --sync'
const updateHint = 'To change a plant: plants update ID --name TEXT'

/**
 * Hints for commands and options that other programs have, at most 48. One with the path of a
 * command is for this command, and any other is true for all.
 */
const familiarWords: ReadonlyMap<string, string> = new Map([
  ['edit', updateHint],
  ['find', searchHint],
  ['init', 'To create a store: plants import FILE, or in a database, plants stores init ADDRESS'],
  ['insert', importHint],
  ['load', importHint],
  ['login', 'To save a token: plants auth login --store ADDRESS'],
  ['open', importHint],
  ['remove', 'To delete plants: plants delete ID'],
  ['rename', updateHint],
  ['save', 'To save plants in a file: plants export FILE, or plants backup FILE'],
  ['search', searchHint],
  ['status', 'To check the store: plants doctor'],
  ['sync', syncHint],
  ['undo', 'To go back: plants restore FILE, such as STORE.before-import-TIME'],
  ['upsert', 'To create or change plants: plants import FILE --if-exists update'],

  ['--all', 'For all plants: plants list, or plants list | plants COMMAND -'],
  ['--csv', 'For CSV: plants list --output csv, or plants export plants.csv'],
  ['--fields', 'To choose columns, pass a table to another program: plants list --output csv'],
  ['--file', 'Files are arguments, as in: plants import plants.csv'],
  ['--filter', filterHint],
  ['--force', 'To be asked nothing: --yes, or where there is none, --no-input'],
  ['--format', 'For another format: --output FORMAT, or for a file, the end of its name'],
  ['--id', 'Ids are arguments, as in: plants get 7 8'],
  ['--json', 'For output in JSON: --output json'],
  ['--name', 'To find plants by their names: plants list --search TEXT'],
  ['--offset', 'To skip plants: plants list --after ID'],
  ['--update', changeExistingHint],
  ['--where', filterHint],

  ['count --file', storeHint],
  ['count --group-by', 'To count by a field: plants count --by tag'],
  ['create --data', jsonHint],
  ['create --json', jsonHint],
  [
    'delete --all',
    'For all plants, with one --store for both: plants list | plants delete - --yes',
  ],
  ['import --csv', formatHint],
  ['import --delete-missing', syncHint],
  ['import --force', changeExistingHint],
  ['import --id', columnsHint],
  ['import --json', formatHint],
  ['import --name', columnsHint],
  ['import --no-header', 'To name the columns of such a table: --columns id,name,tag'],
  ['import --overwrite', changeExistingHint],
  ['import --replace', syncHint],
  ['list --file', storeHint],
  ['list -n', 'For the first plants only: plants list --limit 10'],
  ['serve --listen', 'To choose an address: plants serve --host HOST --port PORT'],
  ['tokens create --name', 'To name a token: plants tokens create --note TEXT'],
  ['tokens create --scope', 'To choose rights: plants tokens create --allow create,read'],
  ['update --id', 'The id is an argument, as in: plants update 12 --name TEXT'],
])

/** @param path the words that select the command, or "" for the program itself */
export function findFamiliarHint(word: string, path: string): string | undefined {
  const hint = familiarWords.get(`${path} ${word}`.trim())
  // The commands of other programs are none of `plants stores`.
  return hint ?? (word.startsWith('-') ? familiarWords.get(word) : undefined)
}
