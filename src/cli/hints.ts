import { formatNames } from '../plant/records.js'
import type { Advice, AdviceCode, Hint } from '../platform/advice.js'
import { isWindows, shellWord } from '../platform/errors.js'

/** What the command line advises: its options, commands and variables are named here, and not below. */
const sentences: { [Code in AdviceCode]: (advice: Advice<Code>) => string } = {
  askForRights: ({ rights }) =>
    `Ask the operator of the service for these rights: plants tokens create --allow ${rights}`,
  awaitDatabase: () => 'Try again, raise --timeout, or allow more connections in its address: ?max=NUMBER',
  awaitService: () => 'Check the address and the network, or wait longer with --timeout 2m',
  awaitStore: () => 'Try again, or wait longer with --timeout 2m',
  checkDisk: () => 'Check the disk first, then what is in the store: plants list',
  chooseAnotherId: () =>
    'Choose another id. To repeat a create safely, use the same --idempotency-key for the same plant',
  countFewer: () => 'Count some of them, with --tag or --search, or run the command on the host of the service',
  createOnServer: ({ address, isOneOfSeveral }) => {
    const doubt = isOneOfSeveral ? 'Another server of the address may have it' : 'Check the address'
    return `${doubt}. To create a store on this server: plants stores init ${shellWord(address)}`
  },
  leaveOutDesc: () => 'Give a number instead of next, or leave out --desc',
  leaveOutSort: () => 'Leave out --sort',
  lookAtPlant: ({ id, store }) =>
    `Whether plant ${id} was changed is unknown. Look at it with: plants get ${id} --store ${shellWord(store)}`,
  nameBackup: () => 'Choose a file that plants backup has created',
  permitStore: () => 'Change the permissions of the file and its directory, or choose another file with --store PATH',
  putOnLocalDisk: () => 'Put it on a local disk: --store PATH',
  raiseSizeLimit: ({ isResumable = false }) =>
    `Raise the limit first: ulimit -f unlimited${isResumable ? '' : '. Then look at what is in the store: plants list'}`,
  repeatCreate: ({ id, key, isSupported }) => {
    const repeat = `To avoid a second plant, repeat it with: --idempotency-key ${shellWord(key)}`
    const condition = isSupported ? '' : ', if the service supports such keys'
    return `Whether plant ${id} is stored is unknown. ${repeat}${condition}`
  },
  replaceConnectTimeout: () => 'Leave it out. How long the database is waited for is --timeout',
  runAtService: () => 'Run the command on the host of the service, or select another store with --store',
  saveToken: () => 'Put the token into PLANTS_TOKEN, or save it with: plants auth login',
  startService: ({ port }) =>
    `Is it running? Try: plants serve ${port === undefined ? '--socket PATH' : `--port ${port}`}`,
  trustIssuer: () => 'If you trust its issuer, give the certificate of the issuer with --ca-cert FILE',
  useAnotherStore: () => 'Choose another file with --store PATH',
  useNewAddress: () =>
    'Redirects are not followed, because the token is only for this address. If the new address is right, use it with --store',
  useOwner: () =>
    'Use the address of the owner: for the tables, with plants stores init ADDRESS; to grant, as in databases.md',

  chooseColumns: () =>
    'Choose columns with --map id=COLUMN,name=COLUMN, or name those of a table without a header with --columns id,name',
  chooseFormat: () =>
    `Choose a name that ends with .${formatNames.join(', .')} or .xlsx, or a format, such as: --output csv`,
  chooseIdColumn: () =>
    'Choose its column with --map id=COLUMN, or number the plants with --id-from next, and add --match name if some are stored',
  chooseOneColumn: ({ field }) => `Choose one with --map ${field}=COLUMN, or give each a different name`,
  chooseSheet: () => 'Choose one with --sheet NAME, and its columns with --map',
  correctMap: () => 'Correct --map: it names a column that is not there',
  exportFewer: () => 'Use --limit and --after, or a .csv file',
  importAlone: () => 'Import it alone, with another --rejects',
  importArray: ({ filter, source }) => `To import that, with ${exactJq}: ${jq(shellWord(filter), source)}`,
  leaveOutSheet: () => 'Leave out --sheet',
  nameEncoding: ({ encoding }) => `Name its encoding: --encoding ${encoding}`,
  readAsNdjson: () => 'It is NDJSON: --format ndjson',
  replaceFile: () => 'To replace it, add --yes',
  restoreRejects: () => 'Restore the file, or add --restart, and --if-exists same for what is stored',
  splitObjects: ({ source }) => `For one on each line, with ${exactJq}: ${jq('-c .', source)}`,
  tryWindowsEncoding: () => 'If it is of an old spreadsheet, look at it with: --encoding windows-1252 --dry-run',
  useAnotherRejectsFile: ({ or }) => `Choose another file with --rejects${or === undefined ? '' : `, or ${or}`}`,
  useAsStore: () => 'If it is a store of plants, name it with --store',
  writeToStdout: ({ format }) => `For stdout: --output ${format}. For a file, name it such as: plants.${format}`,

  setFolder: ({ folder }) => {
    const [variable, instead] = {
      data: ['XDG_DATA_HOME', 'choose a file with --store PATH'],
      config: ['XDG_CONFIG_HOME', 'set PLANTS_CONFIG_DIR'],
      log: ['XDG_STATE_HOME', 'set PLANTS_STATE_DIR'],
    }[folder]
    const variables = isWindows ? 'USERPROFILE, APPDATA and LOCALAPPDATA' : `HOME and ${variable}`
    return `Set ${variables} to absolute paths, or ${instead}`
  },
  setHome: () => {
    const home = isWindows ? 'USERPROFILE' : 'HOME'
    return `Set ${home}, or PLANTS_DATA_DIR and PLANTS_CONFIG_DIR, or choose a file with --store PATH`
  },
  setStateFolder: () => 'Free some space, or choose another directory with the variable PLANTS_STATE_DIR',
}

export function hintText(hint: Hint | undefined): string | undefined {
  return typeof hint === 'object' ? sentenceOf(hint) : hint
}

function sentenceOf<Code extends AdviceCode>(advice: Advice<Code>): string {
  return sentences[advice.code](advice)
}

/** An older one rounds ids beyond 2^53. */
const exactJq = 'jq 1.7 or newer'

/** jq reads no gzip. */
function jq(filter: string, source: string): string {
  const isFile = source !== 'stdin' && !/\.gz$/i.test(source)
  return isFile ? `jq ${filter} ${shellWord(source)} | plants import -` : `jq ${filter}`
}
