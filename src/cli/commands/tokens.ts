import { createDurationParser, parseNonEmptyString } from '../../config/option-values.js'
import { assertDefined, createUsageError, PlantsError } from '../../errors.js'
import { addKeptHint } from '../../output/output.js'
import { parseDecimalId } from '../../plant/plant.js'
import { escapeControlChars } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import {
  createToken,
  defaultRights,
  type Right,
  type Token,
  type TokenStore,
} from '../../stores/tokens.js'
import type { PlantsCommand } from '../command.js'
import { type CommandContext, readStoreContext } from '../context.js'
import type { GlobalOptions } from '../global-options.js'
import { openDirect, openDirectStore } from '../open-store.js'
import { parseRights, rightsRule } from '../options.js'
import { createTablePrinter, printOutcome, printValue } from '../print.js'

interface CreateTokenOptions extends GlobalOptions {
  note?: string
  /** The value of --expires in milliseconds. */
  expires?: number
  allow: readonly Right[]
}

export function define(command: PlantsCommand): void {
  command.description(
    'Manage the tokens of a service that you run with plants serve. The store contains only their hashes.',
  )
  command
    .command('create')
    .description('Create a token and print it. It is not shown again.')
    .addExamples(
      'plants tokens create --note laptop --expires 90d',
      'plants tokens create --note dashboard --allow read',
    )
    .option('--note <text>', 'note that says what the token is for')
    .value(
      '--expires <duration>',
      'lifetime of the token, such as 90d; by default, the token does not expire',
      parseLifetime,
    )
    .value(
      '--allow <rights>',
      `rights of the token, ${rightsRule}`,
      parseRights,
      defaultRights.join(),
    )
    .handler(create)
  command
    .command('list')
    .description('List the notes, rights and dates of the tokens, but not the tokens themselves.')
    .addExamples('plants tokens list')
    .handler(list)
  command
    .command('revoke')
    .description('Revoke a token. A running plants serve rejects it within a second.')
    .addExamples('plants tokens revoke laptop')
    .argument('<token>', 'id or note of the token, as plants tokens list shows it', (text) =>
      parseNonEmptyString('token', text),
    )
    .handler(revoke)
}

async function create(options: CreateTokenOptions, io: Io): Promise<void> {
  const { note, expires, allow } = options
  const context = await readStoreContext(options, io)
  const createdAt = new Date(io.getTimeMs())
  const expiresAt = expires === undefined ? undefined : new Date(io.getTimeMs() + expires)
  const { hashToken } = await import('../../server/authenticate.js')
  const token = createToken()
  const store = assertDefined(await openDirect(context, 'write'))
  try {
    const fields = { note, rights: allow, createdAt, expiresAt }
    const savedToken = await store.tokens.add(hashToken(token), fields)
    await printValue(token, { ...savedToken, token }, context).catch((error: unknown) => {
      throw addKeptHint(error)
    })
    if (io.stdout.isTerminal && !context.reporter.isJson)
      await context.reporter.warn(
        `This is token ${savedToken.id}. Save it now: it is not shown again`,
      )
  } finally {
    await store.close()
  }
}

async function list(options: GlobalOptions, io: Io): Promise<void> {
  const context = await readStoreContext(options, io)
  const store = await openDirectStore(context)
  try {
    const formatCells = (token: Token) => [
      String(token.id),
      escapeControlChars(token.note ?? ''),
      formatDay(token.createdAt),
      formatDay(token.expiresAt),
      describeState(token, io.getTimeMs()),
      token.rights.join(','),
    ]
    const titles = ['ID', 'NOTE', 'CREATED', 'EXPIRES', 'STATE', 'RIGHTS']
    const printer = await createTablePrinter(titles, formatCells, context)
    const total = await printer.printAll(store?.tokens.list() ?? [])
    if (total === 0 && store) await context.reporter.warn('No tokens')
  } finally {
    await store?.close()
  }
}

async function revoke(options: GlobalOptions, io: Io, name: string): Promise<void> {
  const context = await readStoreContext(options, io)
  const store = await openDirectStore(context)
  try {
    const id = store && (await findTokenId(name, store.tokens, context))
    const token =
      id === undefined ? undefined : await store?.tokens.revoke(id, new Date(io.getTimeMs()))
    if (!token)
      throw new PlantsError(
        'notFound',
        `${context.address.name} has no token with this id or note`,
        {
          hint: `List the tokens with: plants tokens list${context.storeFlag}`,
        },
      )
    const note = token.note === undefined ? '' : ` (${escapeControlChars(token.note)})`
    await printOutcome(token, `Revoked token ${token.id}${note}`, context)
  } finally {
    await store?.close()
  }
}

/** A unit is required: 90 would mean 90 seconds, but somebody who writes it means 90 days. */
const parseLifetime = createDurationParser(
  'a duration such as 90d or 12h, up to 36525d',
  1,
  36_525 * 86_400_000,
  '90d, or leave it out for a token that does not expire',
  '',
)

/**
 * Finds a token by its id or its note. A number is more likely an id than a note, so the ids are
 * compared first. If several tokens have the note, only one of them may be not revoked.
 *
 * @throws {PlantsError} `usage` if several tokens with this note are not revoked
 */
async function findTokenId(
  name: string,
  tokens: TokenStore,
  { storeFlag }: CommandContext,
): Promise<bigint | undefined> {
  const id = parseDecimalId(name)
  const tokensWithNote: Token[] = []
  for await (const page of tokens.list()) {
    if (page.some((token) => token.id === id)) return id
    tokensWithNote.push(...page.filter(({ note }) => note === name))
  }
  const activeTokens = tokensWithNote.filter(({ revokedAt }) => !revokedAt)
  if (activeTokens.length > 1)
    throw createUsageError(
      'Several tokens have this note',
      `Give the id of one of them, which this lists: plants tokens list${storeFlag}`,
    )
  return (activeTokens[0] ?? tokensWithNote.at(-1))?.id
}

function describeState({ revokedAt, expiresAt }: Token, timeMs: number): string {
  if (revokedAt) return 'revoked'
  return (expiresAt?.getTime() ?? Infinity) > timeMs ? 'valid' : 'expired'
}

function formatDay(date: Date | undefined): string {
  return date?.toISOString().slice(0, 10) ?? ''
}
