import type { Command } from 'commander'
import { PlantsError } from '../errors.js'
import { type GlobalFlags, parseId, parseLife } from '../flags.js'
import type { Io } from '../io.js'
import { toJson } from '../json.js'
import { visible } from '../output/visible.js'
import { styleFor, warn, writeAnswer } from '../output.js'
import type { Settings } from '../settings/preferences.js'
import { resolveSettings } from '../settings.js'
import { openExistingStore, openStoreWithTokens } from '../stores/open.js'
import type { Token, TokenStore } from '../stores/store.js'

interface CreateFlags extends GlobalFlags {
  note?: string
  expires?: string
}

export function defineTokens(program: Command, io: Io): void {
  const tokens = program
    .command('tokens')
    .summary('manage who may use plants serve')
    .description('Manage the bearer tokens that plants serve accepts. The store keeps only their SHA-256.')
    .addHelpText(
      'after',
      '\nExamples:\n  plants tokens create --note laptop --expires 90d\n  plants tokens list\n  plants tokens revoke 1\n',
    )
  tokens
    .command('create')
    .description('Make a token and print it. It is not shown again.')
    .option('--note <text>', 'what it is for')
    .option('--expires <duration>', 'how long it is valid: 90d, 12h; without, until it is revoked')
    .action((_, command: Command) => create(command.optsWithGlobals<CreateFlags>(), io))
  tokens
    .command('list')
    .description('List the tokens: what they are for and until when, but not the tokens themselves.')
    .action((_, command: Command) => list(command.optsWithGlobals<GlobalFlags>(), io))
  tokens
    .command('revoke')
    .description('Make a token invalid, at once; a running plants serve follows within a second.')
    .argument('<id>', 'the number that plants tokens list shows')
    .action((id: string, _, command: Command) => revoke(id, command.optsWithGlobals<GlobalFlags>(), io))
}

async function create(flags: CreateFlags, io: Io): Promise<void> {
  const settings = await resolveSettings(flags, io)
  const createdAt = new Date(io.time())
  const expiresAt = flags.expires === undefined ? undefined : new Date(io.time() + parseLife('--expires', flags.expires))
  const { digestOf, newToken } = await import('../service/tokens.js')
  const token = newToken()
  const store = await openStoreWithTokens(settings.store, settings.opening)
  try {
    const added = await store.tokens.add(digestOf(token), { note: flags.note, createdAt, expiresAt })
    const hint = `Revoke it with: plants tokens revoke ${added.id}${settings.storeFlag}`
    await writeAnswer(io, settings.errors === 'json' ? `${toJson({ ...fieldsOf(added), token })}\n` : `${token}\n`, hint)
    if (io.stdout.isTerminal && settings.errors === 'text')
      await warn(io, `This is token ${added.id}${expiresAt ? `, valid until ${dateOf(expiresAt)}` : ''}. It is shown only now`, settings)
  } finally {
    await store.close()
  }
}

async function list(flags: GlobalFlags, io: Io): Promise<void> {
  const settings = await resolveSettings(flags, io)
  await withTokens(settings, async (tokens) => {
    const all = (await tokens?.list()) ?? []
    const rows = all.map((token) => [
      String(token.id),
      visible(token.note ?? ''),
      dateOf(token.createdAt),
      dateOf(token.expiresAt),
      stateOf(token, io),
    ])
    const text =
      settings.output === 'json' ? all.map((token) => `${toJson(fieldsOf(token))}\n`).join('') : await tableOf(rows, settings, io)
    if (all.length > 0) await writeAnswer(io, text, 'Run it again')
    else await warn(io, `No tokens. Make one with: plants tokens create${settings.storeFlag}`, settings)
  })
}

async function revoke(text: string, flags: GlobalFlags, io: Io): Promise<void> {
  const settings = await resolveSettings(flags, io)
  const id = parseId('id', text)
  await withTokens(settings, async (tokens) => {
    const token = await tokens?.revoke(id, new Date(io.time()))
    if (!token) {
      const hint = `See which there are with: plants tokens list${settings.storeFlag}`
      throw new PlantsError('notFound', `No token has the id ${id} in ${settings.store.name}`, { hint })
    }
    await writeAnswer(
      io,
      settings.output === 'json'
        ? `${toJson(fieldsOf(token))}\n`
        : `Revoked token ${id}${token.note === undefined ? '' : ` (${visible(token.note)})`}\n`,
      'It is revoked',
    )
  })
}

/** Opens the store for its tokens; when there is none yet, none is made. */
async function withTokens(settings: Settings, action: (tokens: TokenStore | undefined) => Promise<void>): Promise<void> {
  const existing = await openExistingStore(settings.store, settings.opening)
  if (!existing) return action(undefined)
  await existing.close()
  const store = await openStoreWithTokens(settings.store, settings.opening)
  try {
    await action(store.tokens)
  } finally {
    await store.close()
  }
}

async function tableOf(rows: string[][], settings: Settings, io: Io): Promise<string> {
  const { textTable } = await import('../output/table.js')
  return textTable(['ID', 'NOTE', 'CREATED', 'EXPIRES', 'STATE'], rows, await styleFor(settings.colors(io.stdout)))
}

function fieldsOf({ id, note, createdAt, expiresAt, revokedAt }: Token): Record<string, unknown> {
  return { id, note, createdAt, expiresAt, revokedAt }
}

function dateOf(date: Date | undefined): string {
  return date === undefined ? '' : date.toISOString().replace(/:\d\d\.\d+Z$/, 'Z')
}

function stateOf({ revokedAt, expiresAt }: Token, io: Io): string {
  if (revokedAt !== undefined) return 'revoked'
  return expiresAt !== undefined && expiresAt.getTime() <= io.time() ? 'expired' : 'valid'
}
