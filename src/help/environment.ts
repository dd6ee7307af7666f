import { textTable } from '../output/table.js'
import { styleFor } from '../output.js'
import { flagOf, presetOf, type SettingName, settingNames, settingOf } from '../settings/table.js'

/** Where values come from, in words; the README has the same. */
const precedence = 'The first that is there counts: flag, variable, what is saved with the store, what is saved for all stores, default.'

/** Variables that are no settings. */
const otherVariables: [name: string, meaning: string][] = [
  ['PLANTS_TOKEN', 'the token for the store of this run; wins over a token command and a saved token'],
  ['PLANTS_SERVE_TOKEN', 'the token that plants serve accepts, instead of those of the store'],
  ['PLANTS_DATA_DIR', 'the folder of the store local'],
  ['PLANTS_CONFIG_DIR', 'the folder of the settings file'],
  ['PLANTS_STATE_DIR', 'the folder of the journals of imports'],
  ['HTTPS_PROXY, HTTP_PROXY, NO_PROXY', 'the way to a remote store; also in lower case'],
  ['NODE_EXTRA_CA_CERTS', 'PEM certificates that are trusted besides the usual ones'],
  ['NODE_COMPILE_CACHE, NODE_DISABLE_COMPILE_CACHE', 'another folder for what Node keeps of the compiled program; 1 for none'],
  ['NO_COLOR, FORCE_COLOR', 'no colours; colours also where there is no terminal (0 for none), which wins'],
]

/** The page `plants help environment`: every setting and every variable. */
export async function environment(): Promise<string> {
  const plain = await styleFor(false)
  const rows = settingNames.map((name) => [
    name,
    flagOf(name) ?? '-',
    settingOf(name).variable ?? '-',
    placeOf(name),
    presetOf(name),
    settingOf(name).meaning,
  ])
  const settings = textTable(['SETTING', 'FLAG', 'VARIABLE', 'SAVED AS', 'DEFAULT', 'MEANING'], rows, plain)
  return `${precedence}\n\n${settings}\n${textTable(['OTHER VARIABLE', 'MEANING'], otherVariables, plain)}\nAn empty variable counts as none. See also: plants config list\n`
}

/** What `plants config set` calls a setting, for each place where it can be saved. */
function placeOf(name: SettingName): string {
  return settingOf(name)
    .scopes.map((scope) => (scope === 'user' ? name : `stores.NAME.${name}`))
    .join(', ')
}
