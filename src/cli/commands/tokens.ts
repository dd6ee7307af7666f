import { duration, parseText } from '../../config/option-values.js'
import { idFromText } from '../../plant/plant.js'
import { PlantsError, usageError } from '../../platform/errors.js'
import { escapeControlChars } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import {
  defaultRights,
  type Right,
  type Token,
  type TokenStore,
} from '../../stores/common/token-store.js'
import type { GlobalOptions, PlantsCommand } from '../command.js'
import { CommandContext } from '../command-context.js'
import { parseRights, rightsRule } from '../options.js'
import { paged } from '../pager.js'

export interface CreateTokenOptions extends GlobalOptions {
  note?: string
  /** In milliseconds. */
  expires?: number
  allow: readonly Right[]
}

/** A unit is required: 90 would mean seconds, but people mean days. */
const parseLife = duration(
  'a duration with its unit, such as 90d or 12h, up to 36525d',
  1,
  36_525 * 86_400_000,
  '90d',
  '',
)

export function defineTokens(command: PlantsCommand, io: Io): void {
  command
    .description(
      'Manage the bearer tokens that plants serve accepts. The store contains only their SHA-256 hashes.',
    )
    .addExamples(
      'plants tokens create --note laptop --expires 90d',
      'plants tokens create --note dashboard --allow read',
      'plants tokens revoke laptop',
    )
  command
    .command('create')
    .description('Create a token and print it. It is not shown again.')
    .option('--note <text>', 'what the token is for')
    .value(
      '--expires <duration>',
      'lifetime, such as 90d or 12h; by default, until it is revoked',
      parseLife,
    )
    .value(
      '--allow <rights>',
      `rights of the token, ${rightsRule}`,
      parseRights,
      defaultRights.join(),
    )
    .handler((options: CreateTokenOptions) => create(options, io))
  command
    .command('list')
    .alias('ls')
    .description(
      'List the notes, rights and expiry dates of the tokens, but not the tokens themselves.',
    )
    .handler((options: GlobalOptions) => paged(options, io, (shown) => list(options, shown)))
  command
    .command('revoke')
    .aliases(['rm', 'delete', 'remove'])
    .description('Revoke a token. A running plants serve rejects it within a second.')
    .argument('<token>', 'its id or its note, as shown by plants tokens list', (text) =>
      parseText('token', text),
    )
    .handler((options: GlobalOptions, token: string) => revoke(token, options, io))
}

async function create(
  { note, expires, allow, ...options }: CreateTokenOptions,
  io: Io,
): Promise<void> {
  const context = await CommandContext.from(options, io)
  const createdAt = new Date(io.time())
  const expiresAt = expires === undefined ? undefined : new Date(io.time() + expires)
  const { digestOf, newToken } = await import('../../server/authenticator.js')
  const token = newToken()
  const store = await (await context.ownOpener()).open()
  try {
    const same = note === undefined ? [] : await validIds(note, store.tokens, createdAt)
    const added = await store.tokens.add(digestOf(token), {
      note,
      rights: allow,
      createdAt,
      expiresAt,
    })
    const hint = `Revoke it with: plants tokens revoke ${added.id}${context.storeFlag}`
    await context.printWord(token, { ...added, token }, hint)
    const validity = expiresAt ? `, valid until ${expiresAt.toISOString().slice(0, 16)}Z` : ''
    if (io.stdout.isTerminal && !context.reporter.isJson)
      await context.warn(`This is token ${added.id}${validity}. It is not shown again`)
    if (note !== undefined && same.length > 0)
      await context.warn(sameNote(note, [...same, added.id]), 'warning')
  } finally {
    await store.close()
  }
}

async function validIds(note: string, tokens: TokenStore, at: Date): Promise<bigint[]> {
  const ids: bigint[] = []
  for await (const page of tokens.list())
    for (const token of page)
      if (token.note === note && isValid(token, at.getTime())) ids.push(token.id)
  return ids
}

function isValid({ revokedAt, expiresAt }: Token, time: number): boolean {
  return !revokedAt && (expiresAt?.getTime() ?? Infinity) > time
}

/** A revocation by the note cannot choose one of them. */
function sameNote(note: string, ids: readonly bigint[]): string {
  return `${ids.length} tokens have the note ${JSON.stringify(note)}: ${ids.slice(0, 10).join(', ')}`
}

async function list(options: GlobalOptions, io: Io): Promise<void> {
  const context = await CommandContext.from(options, io)
  await withTokens(context, async (tokens) => {
    const cellsOf = (token: Token) => [
      String(token.id),
      escapeControlChars(token.note ?? ''),
      dayOf(token.createdAt),
      dayOf(token.expiresAt),
      token.revokedAt ? 'revoked' : isValid(token, io.time()) ? 'valid' : 'expired',
      token.rights.join(','),
    ]
    const titles = ['ID', 'NOTE', 'CREATED', 'EXPIRES', 'STATE', 'RIGHTS']
    const printer = await context.tablePrinter(titles, cellsOf)
    const total = await printer.all(tokens?.list() ?? [])
    if (total === 0)
      await context.warn(`No tokens. Create one with: plants tokens create${context.storeFlag}`)
  })
}

async function revoke(name: string, options: GlobalOptions, io: Io): Promise<void> {
  const context = await CommandContext.from(options, io)
  const { address, storeFlag } = context
  await withTokens(context, async (tokens) => {
    const now = new Date(io.time())
    const token = tokens && (await revokeNamed(name, tokens, now, storeFlag))
    if (!token) {
      const message = `No token has the id or the note ${JSON.stringify(name)} in ${address.name}`
      const hint = `List the tokens with: plants tokens list${storeFlag}`
      throw new PlantsError('notFound', message, { hint })
    }
    const note = token.note === undefined ? '' : ` (${escapeControlChars(token.note)})`
    const isEarlier = token.revokedAt !== undefined && token.revokedAt < now
    const sentence = isEarlier
      ? `Token ${token.id}${note} was revoked on ${dayOf(token.revokedAt)}`
      : `Revoked token ${token.id}${note}`
    await context.print(token, sentence, 'The token was revoked')
  })
}

/** A store that does not exist is not created: the action gets undefined. */
async function withTokens(
  context: CommandContext,
  action: (tokens: TokenStore | undefined) => Promise<void>,
): Promise<void> {
  const opener = await context.ownOpener()
  const existing = await context.openStore()
  if (!existing) return action(undefined)
  await existing.close()
  const store = await opener.open()
  try {
    await action(store.tokens)
  } finally {
    await store.close()
  }
}

/** By id or note. Throws `usage` if several that are valid have the note. Returns a token that was revoked as it is. */
async function revokeNamed(
  name: string,
  tokens: TokenStore,
  at: Date,
  storeFlag: string,
): Promise<Token | undefined> {
  const id = idFromText(name)
  const named: Token[] = []
  for await (const page of tokens.list()) {
    const ofId = page.find((token) => token.id === id)
    if (ofId) return ofId.revokedAt ? ofId : tokens.revoke(ofId.id, at)
    named.push(...page.filter(({ note }) => note === name))
  }
  const open = named.filter(({ revokedAt }) => !revokedAt)
  const [first] = open
  if (open.length < 2) return first ? tokens.revoke(first.id, at) : named.at(-1)
  const hint = `Use an id: plants tokens revoke ID${storeFlag}`
  throw usageError(
    sameNote(
      name,
      open.map((token) => token.id),
    ),
    hint,
  )
}

function dayOf(date: Date | undefined): string {
  return date?.toISOString().slice(0, 10) ?? ''
}
