import { describe } from 'vitest'
import type { DirectStore, Store } from '../../src/stores/store.js'
import { describeChanges } from './claims/changes.js'
import { describeCounts, describeGroups } from './claims/count.js'
import { describeCreates } from './claims/create.js'
import { describeDeletes } from './claims/delete.js'
import type { OpenEmpty } from './claims/fixtures.js'
import { describeKeys } from './claims/keys.js'
import { describeReads } from './claims/read.js'
import { describeSearches } from './claims/search.js'
import { describeOrder } from './claims/sort.js'
import { describeTokens } from './claims/tokens.js'
import { describeTransactions } from './claims/transactions.js'
import { describeUpdates } from './claims/update.js'

/** What every store must do, wherever it keeps its plants. `open` gives an empty one. */
export function describeStore(name: string, open: OpenEmpty<Store>): void {
  describe(name, () => {
    describeCreates(open)
    describeKeys(open)
    describeUpdates(open)
    describeDeletes(open)
    describeChanges(open)
    describeReads(open)
    describeSearches(open)
    describeCounts(open)
  })
}

/** What a store must do besides that the program opens itself. `open` gives an empty one. */
export function describeDirectStore(name: string, open: OpenEmpty<DirectStore>): void {
  describeStore(name, open)
  describe(name, () => {
    describeOrder(open)
    describeGroups(open)
    describeTransactions(open)
    describeTokens(async () => (await open()).store)
  })
}
