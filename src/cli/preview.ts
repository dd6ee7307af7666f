import { locateToken } from '../auth/credentials.js'
import { addLookupHint, describePlant, quoteIfNeeded, styleFor, writeResult } from '../output/output.js'
import { escapeUnsafe } from '../plant/exact-json.js'
import type { NewPlant } from '../plant/plant.js'
import { escapeControlChars } from '../platform/escape.js'
import type { Io } from '../platform/io.js'
import type { Access } from '../stores/common/access.js'
import type { RemoteAddress } from '../stores/common/address.js'
import type { OpenOptions } from '../stores/common/store.js'
import { ownSchemeOf, takesToken } from '../stores/registry.js'
import type { Settings } from './context.js'
import { accessTo } from './store-access.js'

interface CreateRequest {
  idempotencyKey: string | undefined
  /** with options that run no token command */
  readPlant(storeOptions: OpenOptions): Promise<NewPlant>
}

/** Throws the same errors as a create. Writes and sends nothing, shows no token, and runs no token command. */
export async function showPreview(create: CreateRequest, settings: Settings, io: Io): Promise<void> {
  const { store } = settings
  if (takesToken(store)) return previewAtService(store, create, settings, io)
  const { idempotencyKey } = create
  const plant = await create.readPlant(settings.storeOptions)
  const { exists, creates } = await ownSchemeOf(store)
    .previewCreate(store, plant, idempotencyKey, settings.storeOptions)
    .catch((error: unknown) => {
      throw addLookupHint(error, plant.id, settings)
    })
  const what = describePlant(plant, await styleFor(settings.colors(io.stdout)))
  const sentence = creates
    ? `Would plant ${what} in ${quoteIfNeeded(store.name)}${exists ? '' : ', which would be created'}`
    : `Would plant nothing: the idempotency key has already created ${what}`
  const fields = { dryRun: true, ...plant, store: store.name, storeExists: exists, creates, idempotencyKey }
  await writeResult(io, { output: settings.output }, fields, sentence, 'Nothing was created')
}

async function previewAtService(store: RemoteAddress, create: CreateRequest, settings: Settings, io: Io) {
  const found = locateToken(store, settings, io)
  const place = found?.place ?? 'there is no token yet: set PLANTS_TOKEN, or save one with plants auth login'
  const token = { token: '***', source: found?.source ?? 'variable', place } as const
  let previewed: Promise<Access> | undefined
  const preview = async () => (previewed ??= accessTo(store, settings, io, token))
  const plant = await create.readPlant({ ...settings.storeOptions, access: preview })
  const access = await preview()
  const { describeCreate } = await import('../stores/http/plant-request.js')
  const request = describeCreate(store, access, plant, create.idempotencyKey)
  const proxy = access.proxy && new URL(access.proxy).host
  const socket = store.socketPath
  const what = describePlant(plant, await styleFor(settings.colors(io.stdout)))
  const route = [socket && ` over the socket ${escapeControlChars(socket)}`, proxy && ` through the proxy ${proxy}`]
  const text = [
    `Would plant ${what} at ${quoteIfNeeded(store.name)}\n`,
    `${request.method} ${escapeControlChars(request.url)}${route.join('')}`,
    ...Object.entries(request.headers).map(
      ([name, value]) => `${name}: ${value}${name === 'authorization' ? ` (${escapeControlChars(place)})` : ''}`,
    ),
    `\n${escapeUnsafe(request.body)}`,
  ].join('\n')
  const { authorization, ...headers } = request.headers
  const shown = found ? request : { ...request, headers }
  const source = found?.source ?? 'none'
  const fields = { dryRun: true, ...plant, store: store.name, token: source, socket, proxy, request: shown }
  await writeResult(io, { output: settings.output }, fields, text, 'Nothing was created')
}
