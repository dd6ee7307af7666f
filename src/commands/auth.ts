import type { Command } from 'commander'
import { type Credential, checkToken, findToken, noToken, removeToken, saveToken } from '../credentials.js'
import { PlantsError, systemCode } from '../errors.js'
import type { GlobalFlags } from '../flags.js'
import { readText } from '../input.js'
import type { Io } from '../io.js'
import { toJson } from '../json.js'
import { writeAnswer } from '../output.js'
import { resolveSettings, type Settings } from '../settings.js'
import type { RemoteAddress } from '../stores/store.js'

interface LoginFlags extends GlobalFlags {
  withToken?: boolean
}

export function defineAuth(program: Command, io: Io): void {
  const auth = program
    .command('auth')
    .summary('save the token for a remote store')
    .description('Manage the token for a remote store. It is kept in your settings file, and sent to this address alone.')
    .addHelpText('after', examples)
  auth
    .command('login')
    .description('Save the token for the store: asks for it, or reads it from stdin.')
    .option('--with-token', 'read the token from stdin')
    .action((_, command: Command) => login(command.optsWithGlobals<LoginFlags>(), io))
  auth
    .command('logout')
    .description('Remove the token for the store.')
    .action((_, command: Command) => logout(command.optsWithGlobals<GlobalFlags>(), io))
  auth
    .command('status')
    .description('Show where the token for the store comes from.')
    .action((_, command: Command) => status(command.optsWithGlobals<GlobalFlags>(), io))
}

const examples = `
Examples:
  plants auth login --store https://plants.example.com
  plants auth login --store https://plants.example.com --with-token < token.txt
  plants auth status --store https://plants.example.com
`

async function login(flags: LoginFlags, io: Io): Promise<void> {
  const { settings, store } = await resolveRemote(flags, io)
  const savedAt = await saveToken(store, await readToken(flags, store, settings, io), io)
  await tell({ source: 'saved', savedAt }, store, 'Saved the token', settings, io)
}

async function logout(flags: GlobalFlags, io: Io): Promise<void> {
  const { settings, store } = await resolveRemote(flags, io)
  const wasThere = await removeToken(store, io)
  const rest = io.env['PLANTS_TOKEN'] ? '. PLANTS_TOKEN is still set' : ''
  const text = `${wasThere ? 'Removed the token' : 'There was no saved token'} for ${store.name}${rest}`
  await writeAnswer(io, settings.output === 'json' ? `${toJson({ store: store.name, removed: wasThere })}\n` : `${text}\n`, 'Run it again')
}

async function status(flags: GlobalFlags, io: Io): Promise<void> {
  const { settings, store } = await resolveRemote(flags, io)
  const found = await findToken(store, io)
  if (!found) throw noToken(store, settings.storeFlag)
  await tell(found, store, 'There is a token', settings, io)
}

async function tell(
  { source, savedAt }: Omit<Credential, 'token'>,
  store: RemoteAddress,
  what: string,
  settings: Settings,
  io: Io,
): Promise<void> {
  const rest = source === 'saved' && io.env['PLANTS_TOKEN'] ? '. PLANTS_TOKEN is still set, and wins over it' : ''
  const where = source === 'saved' ? `saved on ${savedAt?.slice(0, 16)}Z${rest}` : `from ${source}`
  const fields = { store: store.name, source, savedAt }
  await writeAnswer(io, settings.output === 'json' ? `${toJson(fields)}\n` : `${what} for ${store.name}, ${where}\n`, 'Run it again')
}

async function readToken(flags: LoginFlags, store: RemoteAddress, settings: Settings, io: Io): Promise<string> {
  if (flags.withToken && !io.stdin.isTerminal) return checkToken((await readStdin(io)).trim(), 'The token on stdin')
  if (!settings.mayAsk()) {
    throw new PlantsError('malformed', 'Nobody can be asked for the token', {
      hint: 'Read it from stdin: plants auth login --with-token < FILE',
    })
  }
  const { askForToken } = await import('../prompts.js')
  return askForToken(`token for ${store.name}`, complaintOf, settings.colors(io.stderr), io)
}

async function readStdin(io: Io): Promise<string> {
  try {
    return await readText('-', io)
  } catch (error) {
    if (!(error instanceof PlantsError)) throw error
    const why = error.kind === 'tooLarge' ? 'is too long for a token' : 'is not UTF-8'
    if (error.kind !== 'tooLarge' && systemCode(error.cause) !== 'ERR_ENCODING_INVALID_ENCODED_DATA') throw error
    throw new PlantsError('malformed', `What is on stdin ${why}`, { hint: 'Copy the token again, and nothing else with it', cause: error })
  }
}

function complaintOf(text: string): string | undefined {
  try {
    checkToken(text, 'A token')
    return undefined
  } catch (error) {
    if (!(error instanceof PlantsError)) throw error
    return error.message
  }
}

async function resolveRemote(flags: GlobalFlags, io: Io): Promise<{ settings: Settings; store: RemoteAddress }> {
  const settings = await resolveSettings(flags, io)
  if (settings.store.kind === 'remote') return { settings, store: settings.store }
  throw new PlantsError('malformed', `${settings.store.name} is a file, which takes no token`, {
    hint: 'Name the service: --store https://plants.example.com',
  })
}
