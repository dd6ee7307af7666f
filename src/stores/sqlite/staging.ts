import type { PlantsError } from '../../errors.js'
import { type Batch, type BulkStore, type CreateManyOptions, idTaken, Outcome } from '../store.js'
