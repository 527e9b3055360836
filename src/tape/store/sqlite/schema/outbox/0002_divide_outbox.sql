-- SQLite has no partitions: its outbox stays one table. The step is here so that both dialects count alike.
SELECT 1;
